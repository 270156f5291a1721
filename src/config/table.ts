/**
 * Strict reading of a configuration table into a typed, frozen record: every key known, every value checked,
 * a misspelt key answered with the nearest known one.
 */
import { EXIT, Problem } from "../error/problem.ts";
import { nearest } from "../std/nearest.ts";

/** A value as read, or why it is refused: "must be …, not …". */
export type Reader<T> = (value: unknown) => T | Problem;

export interface Key<T> {
  /** Name in the file. */
  readonly key: string;
  readonly read: Reader<T>;
  /** Used when the key is absent; a key without it is required. */
  readonly fallback?: T;
}

export type Keys<T> = { readonly [K in keyof T]: Key<T[K]> };

export function refused(expected: string, value: unknown): Problem {
  return new Problem(`must be ${expected}, not ${JSON.stringify(value)}`, EXIT.usage);
}

export const text: Reader<string> = (value) =>
  typeof value === "string" && value !== "" ? value : refused("a text that is not empty", value);

export const flag: Reader<boolean> = (value) => (typeof value === "boolean" ? value : refused("true or false", value));

export const integer =
  (min: number, max: number): Reader<number> =>
  (value) =>
    Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
      ? Number(value)
      : refused(`a whole number from ${min} to ${max}`, value);

export const oneOf =
  <T extends string>(...choices: readonly T[]): Reader<T> =>
  (value) =>
    choices.find((choice) => choice === value) ?? refused(choices.map((choice) => `"${choice}"`).join(" or "), value);

export type Table = Readonly<Record<string, unknown>>;

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads one table of the file: `where` is its name in messages. */
export function readTable<T>(
  value: unknown,
  where: string,
  keys: Keys<T>,
  others: readonly string[] = [],
): T | Problem {
  if (!isTable(value)) return new Problem(`${where} must be a table`, EXIT.usage);
  const fields = Object.entries(keys) as [keyof T, Key<T[keyof T]>][];
  const known = [...fields.map(([, field]) => field.key), ...others];
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue;
    const hint = nearest(name, known);
    return new Problem(`${where}: unknown key '${name}'; did you mean '${hint}'?`, EXIT.usage);
  }
  const result: Partial<T> = {};
  for (const [name, field] of fields) {
    const given = value[field.key];
    if (given === undefined && !("fallback" in field)) {
      return new Problem(`${where}: the key '${field.key}' is missing`, EXIT.usage);
    }
    const read = given === undefined ? (field.fallback as T[keyof T]) : field.read(given);
    if (read instanceof Problem) return new Problem(`${where}: ${field.key} ${read.message}`, EXIT.usage);
    result[name] = read;
  }
  return Object.freeze(result) as T;
}

export function readTables<T>(value: unknown, kind: string, path: string, keys: Keys<T>): Map<string, T> | Problem {
  const tables = new Map<string, T>();
  if (value === undefined) return tables;
  if (!isTable(value)) return new Problem(`${path}: ${kind} must hold tables: [${kind}."ID"]`, EXIT.usage);
  for (const [id, table] of Object.entries(value)) {
    const read = readTable(table, `${path}: [${kind}."${id}"]`, keys);
    if (read instanceof Problem) return read;
    tables.set(id, read);
  }
  return tables;
}
