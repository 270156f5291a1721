/** Ids for people and logs, and the base62 text that they are made of. */
import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";

/** Digits, upper case, lower case: in ASCII order, so that texts of equal length sort as their numbers. */
export const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** `value` (an integer from 0 to 2^53 − 1) in exactly `chars` characters, padded with zeros on the left. */
export function base62(value: number, chars: number): string {
  let text = "";
  let rest = value;
  for (let i = 0; i < chars; i += 1) {
    text = BASE62.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  assert(rest === 0, "the number fits into its base62 text");
  return text;
}

const pool = new Uint8Array(1024);
let poolNext = pool.length;

/** `chars` random characters from the operating system's generator, each of the 62 equally likely. */
export function randomBase62(chars: number): string {
  return randomText(BASE62, chars);
}

/** The same of other letters, at most 256. */
export function randomText(letters: string, chars: number): string {
  // Larger bytes are thrown away, or some letters would be likelier than others.
  const limit = 256 - (256 % letters.length);
  let text = "";
  while (text.length < chars) {
    if (poolNext === pool.length) {
      crypto.getRandomValues(pool);
      poolNext = 0;
    }
    const byte = pool[poolNext] ?? limit;
    // Overwritten after use, so that no secret stays in the pool.
    pool[poolNext] = 0;
    poolNext += 1;
    if (byte < limit) text += letters.charAt(byte % letters.length);
  }
  return text;
}

export type IdPrefix = `${string}_` | "anon-";

const TIME_CHARS = 8;
const RANDOM_CHARS = 16;

/** The time that the last id has, as text: a request makes several. */
let lastMs = -1;
let lastTime = "";

/** A new id: the prefix, 8 characters of time, by which ids of one kind sort, and 16 random ones (95 bits). */
export function makeId(prefix: IdPrefix, clock: Clock): string {
  const ms = clock.unixMs();
  if (ms !== lastMs) lastTime = base62(ms, TIME_CHARS);
  lastMs = ms;
  return prefix + lastTime + randomBase62(RANDOM_CHARS);
}

const ANON = new RegExp(`^anon-[0-9A-Za-z]{${TIME_CHARS + RANDOM_CHARS}}$`);

/** The text has the form of the session ids that the server assigns. */
export function isAnonId(text: string): boolean {
  return ANON.test(text);
}
