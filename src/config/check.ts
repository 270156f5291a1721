/** Reads tendon.toml and checks configuration against its TypeBox schemas. Messages say which key, what was expected and what was given. */
import type { StaticDecode, TObject, TSchema } from "@sinclair/typebox";
import { Value, type ValueError, ValueErrorType } from "@sinclair/typebox/value";
import { present } from "../std/assert.ts";
import { readText } from "../std/file.ts";
import { nearest } from "../std/nearest.ts";
import { EXIT, Problem } from "../std/problem.ts";

/** The file's keys; none where there is no file and none was asked for. */
export async function readToml(path: string, required: boolean): Promise<Readonly<Record<string, unknown>> | Problem> {
  try {
    const content = await readText(path);
    if (content !== undefined) return { ...Bun.TOML.parse(content) };
    return required ? new Problem(`there is no configuration file at ${path}`, EXIT.usage) : {};
  } catch (error) {
    return new Problem(`${path} cannot be read as TOML: ${(error as Error).message}`, EXIT.usage);
  }
}

/** What `table` says, with the defaults of what it does not say. `where` is its name in messages. */
export function readTable<S extends TObject>(schema: S, table: object, where: string): StaticDecode<S> | Problem {
  const value = Value.Default(schema, table);
  if (Value.Check(schema, value)) return Value.Decode(schema, value);
  const faults = [...Value.Errors(schema, value)];
  // A misspelt key also leaves the right one missing: the misspelt one is the cause.
  const fault = faults.find(({ type }) => type === ValueErrorType.ObjectAdditionalProperties) ?? faults[0];
  return new Problem(`${where}: ${sentence(present(fault, "the fault of a refused table"))}`, EXIT.usage);
}

/** `must be …, not …`, or undefined for a good value. */
export function fieldFault(schema: TSchema, value: unknown): string | undefined {
  return Value.Check(schema, value) ? undefined : expectation(schema, value);
}

function expectation(schema: TSchema, value: unknown): string {
  return `must be ${schema.expected ?? "a table"}, not ${JSON.stringify(value)}`;
}

/** Tables without an id. */
const ONCE: ReadonlySet<string> = new Set(["gpu", "oidc"]);

function sentence({ type, path, schema: field, value }: ValueError): string {
  const keys = path
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  const key = keys.at(-1) ?? "";
  // In most tables at the top, the second key is an id: [robot."ID"]. But for those that are there once.
  const [kind, id] = keys;
  const once = kind !== undefined && ONCE.has(kind);
  const table = once ? `[${kind}]` : id === undefined ? "" : `[${kind}."${id}"]`;
  const inside = once || keys.length > 2 ? `${table}: ` : "";
  if (type === ValueErrorType.ObjectAdditionalProperties) {
    return `${inside}unknown key '${key}'; did you mean '${nearest(key, Object.keys(field.properties ?? {}))}'?`;
  }
  if (type === ValueErrorType.ObjectRequiredProperty) return `${inside}the key '${key}' is missing`;
  if (once && keys.length === 1) return `${table} ${expectation(field, value)}`;
  return `${keys.length === 2 && !once ? table : inside + key} ${expectation(field, value)}`;
}
