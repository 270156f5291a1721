/** Repeats a request that failed for a reason that passes: a broken connection, a busy or restarting service. */
import type { Clock } from "../../std/clock.ts";
import { randomBase62 } from "../../std/ids.ts";
import { Problem } from "../../std/problem.ts";
import { RandomStream } from "../../std/random.ts";
import { ErrorReply, NoAnswer } from "../http.ts";
import { pause } from "../waiting.ts";
import { RunRefusal } from "./exchange.ts";

/** Pauses between repeats: the first, doubled up to the longest; and how often one request may fail in a row. */
export interface Pace {
  readonly firstMs: number;
  readonly longestMs: number;
  readonly failuresMax: number;
}

/** About three minutes in all: a service restarts in less, and a link that is gone for longer is left to the next command. */
export const PACE: Pace = { firstMs: 500, longestMs: 30_000, failuresMax: 12 };

/** However long the service wants to be left alone, the command looks again. */
const RETRY_AFTER_MS_MAX = 300_000;

export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly pace: Pace;
  /** Codes that pass beside the usual ones, with how often each may be met in a row. */
  readonly also?: Readonly<Record<string, number>>;
  /** Whether the last attempt got further than the one before: then it does not count. */
  readonly progressed?: () => boolean;
  /** Whether it is too early to wait for a service at whose address nobody listens. */
  readonly unknownService: () => boolean;
  readonly waiting: (why: Problem, ms: number) => void;
}

export async function patiently<T>(attempt: () => Promise<T | Problem>, patience: Patience): Promise<T | Problem> {
  const { clock, signal, pace, progressed, waiting } = patience;
  for (let failures = 1; ; failures += 1) {
    const outcome = await attempt();
    if (!(outcome instanceof Problem) || signal.aborted) return outcome;
    if (progressed?.() === true) failures = 1;
    if (failures >= allowed(outcome, patience)) return outcome;
    const ms = pauseMs(outcome, failures, pace);
    waiting(outcome, ms);
    await pause(clock, ms, signal);
    if (signal.aborted) return outcome;
  }
}

/** How many failures of this kind in a row are borne. */
function allowed(problem: Problem, { pace, also = {}, unknownService }: Patience): number {
  if (problem instanceof NoAnswer) return problem.nobodyListens && unknownService() ? 0 : pace.failuresMax;
  if (!(problem instanceof ErrorReply)) return 0;
  const { status, code } = problem;
  if (code !== undefined && Object.hasOwn(also, code)) return also[code] ?? 0;
  // A limit of spending is not lifted by waiting.
  const passes = status >= 500 || (status === 429 && code !== "spend_limit_exceeded");
  return passes ? pace.failuresMax : 0;
}

const random = new RandomStream(randomBase62(22));

/** Half of the pause is by chance, so that many robots do not come back at once. Never sooner than the service asks. */
export function pauseMs(problem: Problem, failures: number, pace: Omit<Pace, "failuresMax">): number {
  const chance = random.word() / 2 ** 32;
  const longest = Math.min(pace.longestMs, pace.firstMs * 2 ** (failures - 1));
  const ms = longest * (0.5 + 0.5 * chance);
  const asked = problem instanceof RunRefusal ? problem.retryAfterMs : undefined;
  if (asked === undefined) return ms;
  return Math.max(ms, Math.min(asked, RETRY_AFTER_MS_MAX) + 0.5 * pace.firstMs * chance);
}
