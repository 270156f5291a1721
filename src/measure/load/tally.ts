/** What came of a load: latencies of the chunks, how many came in time, errors by code. */
import { Problem } from "../../std/problem.ts";
import type { Refusal } from "./robots.ts";

/**
 * A chunk plays for a second: one that comes later than that after it was due is of no use to a robot that moves. Goodput counts the
 * others alone.
 */
export const GOOD_MS = 1_000;

export class Tally {
  private readonly latenciesMs: number[] = [];
  private readonly sendLatenessMs: number[] = [];
  /** Replies that brought no chunk, by code. */
  private readonly errors = new Map<string, number>();
  private firstProblem: Problem | undefined;
  private lastMs: number;

  /** Monotonic time at which the measurement begins. */
  constructor(private readonly fromMs: number) {
    this.lastMs = fromMs;
  }

  sent(dueMs: number, nowMs: number): void {
    this.sendLatenessMs.push(nowMs - dueMs);
  }

  answered(dueMs: number, nowMs: number, refusal: Refusal | undefined): void {
    this.lastMs = Math.max(this.lastMs, nowMs);
    if (refusal !== undefined) {
      this.firstProblem ??= refusal.problem;
      this.errors.set(refusal.code, (this.errors.get(refusal.code) ?? 0) + 1);
      return;
    }
    this.latenciesMs.push(nowMs - dueMs);
  }

  /** The figures of a load during which requests were due for `seconds`; a problem when not one chunk came. */
  figures(seconds: number): LoadFigures | Problem {
    const { latenciesMs, sendLatenessMs, errors, fromMs, lastMs, firstProblem } = this;
    const chunks = latenciesMs.length;
    if (chunks === 0) return firstProblem ?? new Problem("no request was due in the measured time");
    return {
      latenciesMs: latenciesMs.toSorted((a, b) => a - b),
      sendLatenessMs: sendLatenessMs.toSorted((a, b) => a - b),
      requests: sendLatenessMs.length,
      chunks,
      chunksPerSecond: (1000 * chunks) / (lastMs - fromMs),
      goodPerSecond: latenciesMs.filter((ms) => ms <= GOOD_MS).length / seconds,
      errors: Object.fromEntries([...errors].toSorted(([a], [b]) => a.localeCompare(b, "en"))),
      seconds,
    };
  }
}

export interface LoadFigures {
  /** Ascending, one of each chunk: from the moment at which its request was due until its reply was read. */
  readonly latenciesMs: readonly number[];
  /** Ascending, one of each request: until the load generator sent it, which is its own lateness and a part of the latency. */
  readonly sendLatenessMs: readonly number[];
  /** Requests that were due in the measured time. */
  readonly requests: number;
  /** Requests that were answered with a chunk. */
  readonly chunks: number;
  /** The rate from the beginning until the last answer was read. */
  readonly chunksPerSecond: number;
  /** The rate of chunks that came within `GOOD_MS` of the moment at which they were due, over the measured time. */
  readonly goodPerSecond: number;
  readonly errors: Readonly<Record<string, number>>;
  /** The measured time, in which requests were due. */
  readonly seconds: number;
}

/** `engine_unavailable ×3, no_answer ×1`; empty for none. */
export function errorsText(errors: LoadFigures["errors"]): string {
  return Object.entries(errors)
    .map(([code, count]) => `${code} ×${count}`)
    .join(", ");
}
