/**
 * Fields of a JSON body. A field has a schema, which describes it to people and programs, and a reader, which decides. The first thing
 * that is wrong counts. A `null` in an optional field is its absence.
 */
import { type SchemaOptions, type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Failure } from "../std/failure.ts";
import { LLM } from "./errors.ts";
import { objectOf } from "./json.ts";

export interface Field<T> {
  readonly schema: TSchema;
  /** `at` is its name in errors. After a fault any value of the type is returned. */
  readonly read: (reading: Reading, value: unknown, at: string) => T;
}

export type Read<F> = F extends Field<infer T> ? T : never;
type Fields = Readonly<Record<string, Field<unknown>>>;
type Values<F extends Fields> = { readonly [Name in keyof F]: Read<F[Name]> };

/** A name that the client made up is shown up to this length. */
const NAME_CHARS_MAX = 128;

export class Reading {
  failure: Failure | undefined;

  /** `what` says what is wrong and what was expected. */
  bad(param: string, what: string): void {
    this.failure ??= new Failure(LLM.invalid_request, `${param}: ${what}`, { param });
  }
}

function checked<S extends TSchema>(schema: S, expected: string, otherwise: Static<S>): Field<Static<S>> {
  const read = (reading: Reading, value: unknown, at: string) => {
    if (Value.Check(schema, value)) return value;
    reading.bad(at, `expected ${expected}`);
    return otherwise;
  };
  return { schema, read };
}

export const flag = (options?: SchemaOptions) => checked(Type.Boolean(options), "true or false", false);
export const text = (options?: SchemaOptions) => checked(Type.String(options), "a text", "");
/** An object whose fields are not looked at. */
export const anyObject = (options?: SchemaOptions) => checked(Type.Object({}, options), "an object", {});

export function number(minimum: number, maximum: number): Field<number> {
  return checked(Type.Number({ minimum, maximum }), `a number from ${minimum} to ${maximum}`, minimum);
}

export function whole(minimum: number, maximum: number, options?: SchemaOptions): Field<number> {
  const schema = Type.Integer({ ...options, minimum, maximum });
  return checked(schema, `a whole number from ${minimum} to ${maximum}`, minimum);
}

export function shortText(minLength: number, maxLength: number): Field<string> {
  return checked(Type.String({ minLength, maxLength }), `a text of ${minLength} to ${maxLength} characters`, "");
}

export function matching(pattern: string, expected: string, options?: SchemaOptions): Field<string> {
  return checked(Type.String({ ...options, pattern }), expected, "");
}

export function words<const Word extends string>(...values: readonly [Word, ...Word[]]): Field<Word> {
  const read = (reading: Reading, value: unknown, at: string) => {
    const word = values.find((one) => one === value);
    if (word === undefined) reading.bad(at, `expected ${quoted(values)}`);
    return word ?? values[0];
  };
  return { schema: Type.String({ enum: [...values] }), read };
}

export function list<T>(field: Field<T>, maxItems?: number, expected = "an array"): Field<readonly T[]> {
  const read = (reading: Reading, value: unknown, at: string) => {
    const items: T[] = [];
    if (!Array.isArray(value)) reading.bad(at, `expected ${expected}`);
    else if (value.length > (maxItems ?? value.length)) reading.bad(at, `expected at most ${maxItems}`);
    else {
      for (const [index, item] of value.entries()) {
        // The rest of a long list need not be read after a fault.
        if (reading.failure) break;
        items.push(field.read(reading, item, `${at}[${index}]`));
      }
    }
    return items;
  };
  return { schema: Type.Array(field.schema, maxItems === undefined ? {} : { maxItems }), read };
}

/** Other fields than these are refused, since what is not known cannot be honoured; those of `ignored` are left out. */
export function object<F extends Fields>(fields: F, ignored: readonly string[] = [], options = {}): Field<Values<F>> {
  const entries = Object.entries(fields);
  const known = new Set([...Object.keys(fields), ...ignored]);
  const read = (reading: Reading, value: unknown, at: string) => {
    const given = objectOf(value);
    if (!given) reading.bad(at, "expected an object");
    const prefix = at === "" ? "" : `${at}.`;
    for (const name in given) {
      if (known.has(name) || given[name] === null) continue;
      reading.bad(`${prefix}${name.slice(0, NAME_CHARS_MAX)}`, "this field is not supported; leave it out");
    }
    const values: Record<string, unknown> = {};
    for (const [name, field] of entries) values[name] = field.read(reading, given?.[name], prefix + name);
    return values as Values<F>;
  };
  const schemas = Object.fromEntries(entries.map(([name, { schema }]) => [name, schema]));
  return { schema: Type.Object(schemas, options), read };
}

type Variant<F> = { [Type in keyof F]: { readonly type: Type } & Read<F[Type]> }[keyof F];

/** Objects of several kinds, each under the word that is its `type`. A word of `others` is taken for one of these. */
export function variants<F extends Readonly<Record<string, Field<object>>>>(
  byType: F,
  others: Readonly<Record<string, keyof F & string>> = {},
): Field<Variant<F>> {
  const read = (reading: Reading, value: unknown, at: string) => {
    const given = objectOf(value);
    if (!given) reading.bad(at, "expected an object");
    const { type: word, ...rest } = given ?? {};
    const type = typeof word === "string" && Object.hasOwn(others, word) ? others[word] : word;
    const field = typeof type === "string" && Object.hasOwn(byType, type) ? byType[type] : undefined;
    if (!field) reading.bad(`${at}.type`, `expected ${quoted(Object.keys(byType))}`);
    return { type, ...field?.read(reading, rest, at) } as Variant<F>;
  };
  const schemas = Object.entries(byType).map(([type, { schema }]) =>
    Type.Composite([Type.Object({ type: Type.Literal(type) }), schema]),
  );
  return { schema: Type.Union(schemas), read };
}

export function mapped<T, R>({ schema, read }: Field<T>, map: (value: T) => R): Field<R> {
  return { schema, read: (reading, value, at) => map(read(reading, value, at)) };
}

/** `instead` is read where the field is absent. */
export function defaulting<T>({ schema, read }: Field<T>, instead: unknown): Field<T> {
  return { schema: nullable(schema), read: (reading, value, at) => read(reading, value ?? instead, at) };
}

export function optional<T>({ schema, read }: Field<T>): Field<T | null> {
  const readOrNull = (reading: Reading, value: unknown, at: string) =>
    value === undefined || value === null ? null : read(reading, value, at);
  return { schema: nullable(schema), read: readOrNull };
}

function nullable(schema: TSchema): TSchema {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

function quoted(values: readonly string[]): string {
  return values.map((word) => `"${word}"`).join(" or ");
}
