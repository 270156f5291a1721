/**
 * Ids for people and logs: a prefix and 24 base62 characters, 8 of time and 16 random (95 bits). Ids of one kind sort by time
 * and cannot be guessed.
 */
import { base62, randomBase62 } from "./base62.ts";
import type { Clock } from "./clock.ts";

export type IdPrefix = "gen_" | "req_" | "anon-" | "acct_" | "cr_";

const TIME_CHARS = 8;
const RANDOM_CHARS = 16;

/** A new id; ids of different milliseconds sort in the order they were made. */
export function makeId(prefix: IdPrefix, clock: Clock): string {
  return prefix + base62(clock.unixMs(), TIME_CHARS) + randomBase62(RANDOM_CHARS);
}

const ANON = new RegExp(`^anon-[0-9A-Za-z]{${TIME_CHARS + RANDOM_CHARS}}$`);

/** Whether `text` has the form of the session ids that the server assigns. */
export function isAnonId(text: string): boolean {
  return ANON.test(text);
}
