/** JSON files and their schemas: reads one and checks it, so that a problem names the place, what was found and what was expected. */
import { readFile } from "node:fs/promises";
import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { present } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";

/** The parsed file, or the problem; `advice` ends every message. */
export async function readJson<S extends TSchema>(
  path: string,
  schema: S,
  advice: string,
): Promise<Static<S> | Problem> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    return new Problem(`${path} cannot be read (${reason(error)}); ${advice}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return new Problem(`${path} is not JSON (${(error as Error).message}); ${advice}`);
  }
  const fault = schemaFault(schema, value);
  return fault === undefined ? (value as Static<S>) : new Problem(`${path}: ${fault}; ${advice}`);
}

/** The first fault of a value, as `/action/rows: found 99, expected …`; undefined for a good one. */
export function schemaFault(schema: TSchema, value: unknown): string | undefined {
  return Value.Check(schema, value) ? undefined : firstFault(schema, value);
}

function firstFault(schema: TSchema, value: unknown): string {
  let fault = present(Value.Errors(schema, value).First(), "the fault of a value that does not fit");
  // For a union, the fault of the branch that fits furthest says more than "expected union value"; a branch may have a union in it.
  for (;;) {
    const branches = fault.errors.map((branch) => branch.First()).filter((first) => first !== undefined);
    const deepest = branches.sort((one, other) => other.path.length - one.path.length)[0];
    if (deepest === undefined || deepest.path.length <= fault.path.length) break;
    fault = deepest;
  }
  const found = fault.value === undefined ? "nothing" : clip(JSON.stringify(fault.value));
  const expected = expectation(fault.schema, fault.message);
  return `${fault.path || "/"}: found ${found}, expected ${expected}`;
}

/** TypeBox' message; for a choice its values, which TypeBox does not name. */
function expectation(schema: TSchema, message: string): string {
  const choices = Array.isArray(schema.anyOf) ? (schema.anyOf as TSchema[]) : [];
  const constants = choices.map((choice) => choice.const as unknown).filter((value) => value !== undefined);
  if (choices.length > 0 && constants.length === choices.length) {
    return `one of ${constants.map((value) => JSON.stringify(value)).join(", ")}`;
  }
  const words = message.replace(/^Expected /, "");
  return message === "Unexpected property" ? "no such field" : words.charAt(0).toLowerCase() + words.slice(1);
}

function clip(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

/** A system error in words, for the common codes. */
export function reason(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code === "ENOENT") return "no such file or folder";
  if (code === "EACCES") return "permission denied";
  if (code === "ENOTDIR" || code === "EISDIR") return "a file where a folder should be, or the reverse";
  return code === "" ? (error as Error).message : code;
}

/** An object with these fields and no other. */
export function closed<Fields extends TProperties>(fields: Fields): TObject<Fields> {
  return Type.Object(fields, { additionalProperties: false });
}

export function oneOf<Word extends string>(...words: readonly Word[]): TUnsafe<Word> {
  return Type.Unsafe<Word>(Type.Union(words.map((word) => Type.Literal(word))));
}
