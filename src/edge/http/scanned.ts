/**
 * Large JSON bodies: native threads check them and set long strings aside (engine/bodies.ts), so that what is parsed here is short
 * whatever the client sent. The verdicts and their words are those of json.ts.
 */
import type { Bodies, BodyBounds, SentBody } from "../../engine/bodies.ts";
import type { FoundBody } from "../../engine/found-body.ts";
import { LIMITS } from "../../limits.ts";
import { isObject, type JsonObject, WRONG } from "./json.ts";

/** `texts`: every string is one of JavaScript. `images`: long strings stay outside as `LongText`, JPEGs of data URLs decoded. */
export type Wanted = BodyBounds["wanted"];

/** Does work whose time counts. */
export type Timed = <T>(work: () => T) => T;

interface Scanned {
  readonly value: JsonObject;
  /** To be called when nothing of `value` is used any more. */
  release(): void;
}

/** What is wrong, in a sentence; undefined: nothing could be scanned just now. */
export async function scanObject(
  bodies: Bodies,
  sent: SentBody,
  wanted: Wanted,
  timed: Timed,
): Promise<Scanned | string | undefined> {
  const found = await bodies.scan(sent, boundsOf(sent.length, wanted));
  if (typeof found === "string") return found === "closed" ? undefined : WRONG[found];
  const parsed = timed(() => filled(JSON.parse(found.skeleton), found, wanted));
  const release = () => found.release();
  if (wanted === "texts" || !isObject(parsed)) release();
  return isObject(parsed) ? { value: parsed, release } : WRONG.kind;
}

/** What stays in the skeleton of a body of so many bytes. */
export function boundsOf(length: number, wanted: Wanted): BodyBounds {
  const stringBytesMax = LIMITS.scannedStringBytesMax[wanted];
  return {
    depthMax: LIMITS.jsonDepthMax,
    valuesMax: LIMITS.jsonValuesMax,
    stringBytesMax,
    // The parser is faster with many short strings of escapes than their placeholders are, as long as these are few bytes in all.
    escapedBytesMax:
      wanted === "texts" && length <= LIMITS.escapedBodyBytesMax ? stringBytesMax : LIMITS.escapedStringBytesMax,
    imageBytesMax: LIMITS.jpegBytesMax,
    wanted,
  };
}

/** The value with its long strings in the place of their placeholders. */
function filled(value: unknown, found: FoundBody, wanted: Wanted): unknown {
  if (found.texts === 0) return value;
  const images = wanted === "images";
  // Whoever wants images reads fields by their names, and none of these is long.
  const keys = found.keys && !images;
  const fill = (one: unknown): unknown => {
    if (typeof one === "string") return images ? (found.longText(one) ?? one) : found.text(one);
    if (typeof one !== "object" || one === null) return one;
    if (Array.isArray(one)) {
      for (let at = 0; at < one.length; at += 1) one[at] = fill(one[at]);
      return one;
    }
    const object = one as Record<string, unknown>;
    const names = Object.keys(object);
    for (const name of names) {
      const before = object[name];
      const after = fill(before);
      // `__proto__` is a field of its own here, as JSON.parse makes it, and stays one when it is written.
      if (after !== before) object[name] = after;
    }
    return keys && names.some((name) => found.text(name) !== name) ? renamed(object, names, found) : object;
  };
  return fill(value);
}

/** Equal keys become one, in the place of the first and with the value of the last, as in the parser. */
function renamed(object: Record<string, unknown>, names: readonly string[], found: FoundBody): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const name of names) {
    const key = found.text(name);
    if (key !== "__proto__") out[key] = object[name];
    else Object.defineProperty(out, key, { value: object[name], writable: true, enumerable: true, configurable: true });
  }
  return out;
}
