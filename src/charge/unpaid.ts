/**
 * A bound on work without a charge: refused requests, text descriptions, replays and reads cost processor time (parsing, decoding) and
 * no money. An account has some seconds of it a minute; above that its requests are refused before their bodies are read. Each node
 * counts its own work.
 */
import type { Clock } from "../std/clock.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import { Allowance } from "../std/quota.ts";
import { type Timer, timerOf } from "../std/slices.ts";

/** Failures of the service do not count against the account. */
export function isCallersFault({ status }: Failure): boolean {
  return status < 500;
}

export class Unpaid {
  private readonly allowance: Allowance;

  /** `seconds` of processor time within any minute. */
  constructor(
    private readonly seconds: number,
    private readonly clock: Clock,
  ) {
    this.allowance = new Allowance(seconds * 1_000, 60_000, clock);
  }

  /** Unpaid work of the account took `ms` of processor time. */
  spend(accountId: string, ms: number): void {
    this.allowance.use(accountId, ms);
  }

  /** Does unpaid work of the account. */
  timer(accountId: string): Timer {
    return timerOf(this.clock, (ms) => this.spend(accountId, ms));
  }

  /** `rate_limited` once the account's unpaid work of the last minute has reached the limit. */
  refusal(accountId: string): Failure | undefined {
    const retryAfterSeconds = this.allowance.secondsToWait(accountId);
    if (retryAfterSeconds === undefined) return undefined;
    const message =
      `requests of this account that were refused or are free used ${this.seconds} s of processor time within a minute, ` +
      `the limit for such requests; correct what is refused, and retry after ${retryAfterSeconds} s`;
    return new Failure(EVERY.rate_limited, message, { retryAfterSeconds });
  }
}
