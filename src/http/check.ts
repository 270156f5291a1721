/**
 * The order of checks of a route, as a list. Each entry reads one field of the body into the draft of a command, or says
 * what is wrong with it; its TypeBox fragment describes the field to people and programs.
 */
import { type ObjectOptions, type TObject, type TSchema, Type } from "@sinclair/typebox";
import type { Failure } from "../std/failure.ts";

export interface Check<Draft> {
  /** The top-level field of the body that this entry documents, with its fragment. */
  readonly field?: readonly [name: string, schema: TSchema];
  readonly run: (draft: Draft) => Failure | undefined;
}

/** A field that may be left out or be `null`, which means the same. */
export function optional(schema: TSchema): TSchema {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

/** The first failure in the order of the list. */
export function firstFailure<Draft>(checks: readonly Check<Draft>[], draft: Draft): Failure | undefined {
  for (const check of checks) {
    const failure = check.run(draft);
    if (failure) return failure;
  }
  return undefined;
}

/**
 * The schema of a body whose fields the lists document, in their order; a field that comes twice is as the later list has
 * it. Unknown extra properties are accepted.
 */
export function bodySchema(
  options: ObjectOptions,
  ...lists: readonly (readonly Pick<Check<never>, "field">[])[]
): TObject {
  const fields = lists.flat().flatMap((check) => (check.field ? [check.field] : []));
  return Type.Object(Object.fromEntries(fields), { ...options, additionalProperties: true });
}
