/**
 * JSON bodies with bounds: depth and number of values are found by one pass over the bytes, before anything is parsed,
 * so that a hostile body costs its length and no more. This is for small bodies; larger ones are in scanned.ts.
 */
import { LIMITS } from "../limits.ts";
import { LongText } from "./scanned-body.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof LongText);
}

/** The object, or a sentence that says what is wrong. */
export function parseObject(bytes: Uint8Array): JsonObject | string {
  const outside = jsonBounds(bytes);
  if (outside !== undefined) return outside;
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return WRONG.syntax;
  }
  return isObject(value) ? value : WRONG.kind;
}

/** What is wrong with a body, as clients are told. */
export const WRONG = {
  syntax: "the body is not JSON in UTF-8; send one JSON object",
  kind: "the body is JSON, but not an object; send one JSON object",
  depth: `the body is nested deeper than ${LIMITS.jsonDepthMax} levels; flatten it`,
  values: `the body has over ${LIMITS.jsonValuesMax} values; send less in one request`,
} as const;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

/**
 * What is wrong with the bounds of well-formed JSON text; malformed text may pass, the parser refuses it.
 * Values are arrays, objects and scalars; keys are none. A container that is not empty holds one value more than commas.
 */
export function jsonBounds(bytes: Uint8Array): string | undefined {
  let depth = 0;
  let values = 1;
  let strings = 0;
  let last = 0;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i] ?? 0;
    if (byte <= SPACE) continue;
    if (byte === QUOTE) {
      i = stringEnd(bytes, i);
      strings += 1;
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth -= 1;
      if (last !== OPEN_OBJECT && last !== OPEN_ARRAY) values += 1;
    } else if (byte === COMMA) {
      values += 1;
    }
    if (depth > LIMITS.jsonDepthMax) return WRONG.depth;
    // Well-formed JSON has at most two strings per value, itself and its key; the second bound is for other text.
    if (values > LIMITS.jsonValuesMax || strings > 2 * LIMITS.jsonValuesMax) {
      return WRONG.values;
    }
    last = byte;
  }
  return undefined;
}

/** Index of the quote that ends the string opened at `start`; the end of the text if none does. */
function stringEnd(bytes: Uint8Array, start: number): number {
  const quote = bytes.indexOf(QUOTE, start + 1);
  if (quote === -1) return bytes.length;
  if (bytes[quote - 1] !== BACKSLASH) return quote;
  // The quote may be escaped: walk, since a search for each next quote would be slower on text full of them.
  for (let i = start + 1; i < bytes.length; i += 1) {
    if (bytes[i] === BACKSLASH) i += 1;
    else if (bytes[i] === QUOTE) return i;
  }
  return bytes.length;
}
