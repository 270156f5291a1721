/** Reads the fields of a body one by one; what counts is the first thing that is wrong. `null` in an optional field is its absence. */

import { isObject, type JsonObject } from "../../http/json.ts";
import { Failure } from "../../std/failure.ts";
import { LLM } from "../errors.ts";

/** Of a name that the client made up and reads again. */
const NAME_CHARS_MAX = 128;

export class Reading {
  failure: Failure | undefined;

  /** `what` says what is wrong and what was expected. */
  bad(param: string, what: string): void {
    this.failure ??= new Failure(LLM.invalid_request, `${param}: ${what}`, { param });
  }

  /** Fields of an object besides those of the list are refused: what is not known cannot be honoured. */
  known(value: JsonObject, at: string, names: readonly string[]): void {
    for (const [name, field] of Object.entries(value)) {
      if (field === null || names.includes(name)) continue;
      const shown = name.slice(0, NAME_CHARS_MAX);
      this.bad(at === "" ? shown : `${at}.${shown}`, "this field is not supported; leave it out");
    }
  }

  object(value: unknown, at: string): JsonObject {
    if (isObject(value)) return value;
    this.bad(at, "expected an object");
    return {};
  }

  array(value: unknown, at: string): readonly unknown[] {
    if (Array.isArray(value)) return value;
    this.bad(at, "expected an array");
    return [];
  }

  text(value: unknown, at: string): string {
    if (typeof value === "string") return value;
    this.bad(at, "expected a text");
    return "";
  }

  optionalText(value: unknown, at: string, charsMax = Number.POSITIVE_INFINITY): string | null {
    if (value === undefined || value === null) return null;
    const text = this.text(value, at);
    if (text.length > charsMax) this.bad(at, `expected at most ${charsMax} characters`);
    return text;
  }

  flag(value: unknown, at: string): boolean | null {
    if (value === undefined || value === null || typeof value === "boolean") return value ?? null;
    this.bad(at, "expected true or false");
    return null;
  }

  number(value: unknown, at: string, min: number, max: number): number | null {
    if (value === undefined || value === null) return null;
    if (typeof value === "number" && value >= min && value <= max) return value;
    this.bad(at, `expected a number from ${min} to ${max}`);
    return null;
  }

  whole(value: unknown, at: string, min: number, max: number): number | null {
    if (value === undefined || value === null) return null;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
    this.bad(at, `expected a whole number from ${min} to ${max}`);
    return null;
  }

  oneOf<const Word extends string>(value: unknown, at: string, words: readonly Word[]): Word | null {
    if (value === undefined || value === null) return null;
    const word = words.find((one) => one === value);
    if (word === undefined) this.bad(at, `expected ${words.map((one) => `"${one}"`).join(" or ")}`);
    return word ?? null;
  }

  /** A name of a function or of a schema. */
  name(value: unknown, at: string): string {
    const name = this.text(value, at);
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) this.bad(at, "expected 1 to 64 of the characters A-Z a-z 0-9 _ -");
    return name;
  }
}
