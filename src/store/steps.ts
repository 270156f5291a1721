/**
 * An operation of the store, written once for both engines: a generator that yields statements and gets their outcomes.
 * SQLite runs a write on its writer thread without a pause, PostgreSQL in one transaction.
 *
 * Texts are written for PostgreSQL, in the part of SQL that both know. Parameters are `$1`, `$2`, or `$name` with a record of
 * their values. Every integer is 64 bits and arrives as a bigint. `FOR NO KEY UPDATE` is removed for SQLite, which has one
 * writer. A list is one parameter, a JSON array that `listed` spreads. `sqlite/statements.ts` translates.
 */
import { assert } from "../std/assert.ts";

export type Value = string | number | bigint | null | Uint8Array;

/** Values by parameter name; undefined is NULL. Names that the text lacks are ignored. */
type Fields = Readonly<Record<string, Value | undefined>>;

type Bindings = readonly Value[] | readonly [Fields];

export interface Statement {
  readonly text: string;
  readonly values: readonly Value[];
  /** The outcome is the rows, or the number of changed rows. */
  readonly wants: "rows" | "count";
}

/** The generator ends with the outcome of the operation. */
export type Steps<R> = Generator<Statement, R, unknown>;

export function* rows<Row>(text: string, ...given: Bindings): Steps<readonly Row[]> {
  // The engine answers a statement that wants rows with rows; their columns are those of the text.
  return (yield bound(text, given, "rows")) as readonly Row[];
}

export function* first<Row>(text: string, ...given: Bindings): Steps<Row | undefined> {
  return (yield* rows<Row>(text, ...given))[0];
}

/** The number of rows that the statement changed. */
export function* changes(text: string, ...given: Bindings): Steps<number> {
  return (yield bound(text, given, "count")) as number;
}

const NAME = /\$([a-z]\w*)/gi;

/** Texts with numbered parameters, and the names of these, by the texts with names. */
const numbered = new Map<string, { readonly text: string; readonly names: readonly string[] }>();

function bound(text: string, given: Bindings, wants: Statement["wants"]): Statement {
  if (!isNamed(given)) return { text, values: given, wants };
  const [fields] = given;
  let known = numbered.get(text);
  if (!known) {
    const names = [...new Set([...text.matchAll(NAME)].map(([, name = ""]) => name))];
    for (const name of names) assert(name in fields, `the statement has a value for $${name}`);
    known = { text: text.replace(NAME, (_, name: string) => `$${names.indexOf(name) + 1}`), names };
    numbered.set(text, known);
  }
  return { text: known.text, values: known.names.map((name) => fields[name] ?? null), wants };
}

function isNamed(given: Bindings): given is readonly [Fields] {
  const [value] = given;
  return typeof value === "object" && value !== null && !(value instanceof Uint8Array);
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
