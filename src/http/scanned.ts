/**
 * Large JSON bodies: native threads check them and set long strings aside (bodies.ts), so that what is parsed here is always short.
 * The verdicts and their words are those of json.ts.
 */
import { LIMITS } from "../limits.ts";
import { inSlices, pause, type Steps, type Timer } from "../std/slices.ts";
import type { Bodies, BodyUse, SentBody } from "./bodies.ts";
import { isObject, type JsonObject, WRONG } from "./json.ts";
import type { ScannedBody } from "./scanned-body.ts";

/** What a handler gets of a body. */
export interface BodyValue<T> {
  readonly value: T;
  /** Gives the memory back; called once, when nothing of `value` is used any more. */
  release(): void;
}

/**
 * With `images` the long strings of the value are `LongText`s. A text: what is wrong, in a sentence. Undefined: nothing could be
 * scanned just now.
 */
export async function scanObject(
  bodies: Bodies,
  sent: SentBody,
  use: BodyUse,
  timer: Timer,
): Promise<BodyValue<JsonObject> | string | undefined> {
  const found = await bodies.scan(sent, use);
  if (typeof found === "string") return found === "closed" ? undefined : WRONG[found];
  const skeleton: unknown = timer(() => JSON.parse(found.skeleton));
  const parsed = found.texts === 0 ? skeleton : await inSlices(filled(skeleton, found, use), timer);
  // Parsing took milliseconds, and the checks of the fields will.
  if (found.skeleton.length > LIMITS.parsedBodyBytesMax) await pause();
  const release = () => found.release();
  if (use === "texts" || !isObject(parsed)) release();
  return isObject(parsed) ? { value: parsed, release } : WRONG.kind;
}

/** Values between two places where the work may pause. */
const STEP_VALUES = 32;

/** The value with its long strings in the place of their placeholders. */
function* filled(value: unknown, found: ScannedBody, use: BodyUse): Steps<unknown> {
  const images = use === "images";
  // A route with images reads fields by their names, and none of these is long.
  const keys = found.keys && !images;
  const text = (one: string) => (images ? (found.longText(one) ?? one) : found.text(one));
  const fill = function* (one: unknown): Steps<unknown> {
    if (typeof one !== "object" || one === null) return typeof one === "string" ? text(one) : one;
    if (Array.isArray(one)) {
      for (let at = 0; at < one.length; at += 1) {
        const before = one[at];
        one[at] = typeof before === "string" ? text(before) : yield* fill(before);
        if (at % STEP_VALUES === 0) yield;
      }
      return one;
    }
    const object = one as Record<string, unknown>;
    const names = Object.keys(object);
    for (const [at, name] of names.entries()) {
      const before = object[name];
      const after = typeof before === "string" ? text(before) : yield* fill(before);
      // JSON.parse makes `__proto__` a plain field, and it stays one when it is written.
      if (after !== before) object[name] = after;
      if (at % STEP_VALUES === 0) yield;
    }
    return keys && names.some((name) => found.isLong(name)) ? yield* renamed(object, names, found) : object;
  };
  return yield* fill(value);
}

/** Equal keys become one, in the place of the first and with the value of the last, as in the parser. */
function* renamed(
  object: Record<string, unknown>,
  names: readonly string[],
  found: ScannedBody,
): Steps<Record<string, unknown>> {
  const out: Record<string, unknown> = {};
  for (const [at, name] of names.entries()) {
    const key = found.text(name);
    if (key !== "__proto__") out[key] = object[name];
    else Object.defineProperty(out, key, { value: object[name], writable: true, enumerable: true, configurable: true });
    if (at % STEP_VALUES === 0) yield;
  }
  return out;
}
