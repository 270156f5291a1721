/**
 * An operation of the store, written once for both engines: a generator that yields statements and gets their outcome.
 * SQLite runs a write on its writer thread without a pause, PostgreSQL in a transaction of its own.
 *
 * Texts are written for PostgreSQL, in the part of SQL that both know: parameters are `$1`, `$2`; every integer is 64 bits and
 * arrives as a bigint; `FOR NO KEY UPDATE` is removed for SQLite, which has one writer; a list is one parameter, a JSON array
 * that `listed` spreads. `sqlite/statements.ts` translates.
 */

export type Value = string | number | bigint | null | Uint8Array;

export interface Statement {
  readonly text: string;
  readonly values: readonly Value[];
  /** What its outcome is: its rows, or how many rows it changed. */
  readonly wants: "rows" | "count";
}

/** Ends with the outcome of the operation. */
export type Steps<R> = Generator<Statement, R, unknown>;

export function* rows<Row>(text: string, ...values: readonly Value[]): Steps<readonly Row[]> {
  // The engine answers a statement that wants rows with rows; their columns are those of the text.
  return (yield { text, values, wants: "rows" }) as readonly Row[];
}

export function* first<Row>(text: string, ...values: readonly Value[]): Steps<Row | undefined> {
  return (yield* rows<Row>(text, ...values))[0];
}

/** How many rows the statement changed. */
export function* changes(text: string, ...values: readonly Value[]): Steps<number> {
  return (yield { text, values, wants: "count" }) as number;
}

/** The members of a JSON array of texts in parameter `n`, as a subquery. */
export function listed(n: number): string {
  return `(SELECT value FROM json_array_elements_text($${n}::text::json))`;
}

/** Runs an operation where statements are answered at once. */
export function drive<R>(steps: Steps<R>, execute: (statement: Statement) => unknown): R {
  let next = steps.next();
  while (!next.done) next = steps.next(execute(next.value));
  return next.value;
}

/** Runs an operation where statements are answered later. */
export async function driveLater<R>(steps: Steps<R>, execute: (statement: Statement) => Promise<unknown>): Promise<R> {
  let next = steps.next();
  while (!next.done) next = steps.next(await execute(next.value));
  return next.value;
}
