/**
 * Work that nobody pays for: refused requests, text descriptions and replays cost processor time (parsing, decoding) and no money.
 * Of one account they may cost so many seconds a minute; above that its requests are refused before their bodies are read.
 * Each node bounds what it does itself.
 */

import type { Clock } from "../std/clock.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import { Allowance } from "../std/quota.ts";

/** A service in trouble is no fault of the account. */
export function isCallersFault({ status }: Failure): boolean {
  return status < 500;
}

export class Unpaid {
  private readonly allowance: Allowance;

  /** `seconds`: of processor time, within any minute. */
  constructor(
    private readonly seconds: number,
    clock: Clock,
  ) {
    this.allowance = new Allowance(seconds * 1_000, 60_000, clock);
  }

  /** Unpaid work of the account took `ms` of processor time. */
  spend(accountId: string, ms: number): void {
    this.allowance.use(accountId, ms);
  }

  /** `rate_limited` once the account's unpaid work of the last minute has reached the limit. */
  refusal(accountId: string): Failure | undefined {
    const retryAfterSeconds = this.allowance.secondsToWait(accountId);
    if (retryAfterSeconds === undefined) return undefined;
    const message =
      `requests of this account that were refused or are free took ${this.seconds} s of processor time within a minute, ` +
      `which is all that they may; mend what is refused, and go on in ${retryAfterSeconds} s`;
    return new Failure(EVERY.rate_limited, message, { retryAfterSeconds });
  }
}
