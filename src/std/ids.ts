/** Ids for people and logs: a prefix, 8 base62 characters of time, by which ids of one kind sort, and 16 random ones (95 bits). */
import { base62, randomBase62 } from "./base62.ts";
import type { Clock } from "./clock.ts";

export type IdPrefix =
  | "gen_"
  | "req_"
  | "anon-"
  | "acct_"
  | "cr_"
  | "resp_"
  | "msg_"
  | "rs_"
  | "fc_"
  | "call_"
  | "key_"
  | "node_"
  | "run_"
  | "blob_"
  | "up_"
  | "del_"
  | "join_";

const TIME_CHARS = 8;
const RANDOM_CHARS = 16;

/** The time that the last id has, as text: a request makes several. */
let lastMs = -1;
let lastTime = "";

/** A new id; ids of different milliseconds sort in the order they were made. */
export function makeId(prefix: IdPrefix, clock: Clock): string {
  const ms = clock.unixMs();
  if (ms !== lastMs) lastTime = base62(ms, TIME_CHARS);
  lastMs = ms;
  return prefix + lastTime + randomBase62(RANDOM_CHARS);
}

const ANON = new RegExp(`^anon-[0-9A-Za-z]{${TIME_CHARS + RANDOM_CHARS}}$`);

/** Whether `text` has the form of the session ids that the server assigns. */
export function isAnonId(text: string): boolean {
  return ANON.test(text);
}
