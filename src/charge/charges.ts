/** Money of runs: the most that a run can cost is held before it begins, and settled at its real cost or given back. */
import { Failure } from "../error/core.ts";
import { EVERY } from "../error/every-route.ts";
import { LIMITS } from "../limits.ts";
import { assert } from "../std/assert.ts";
import { dayOf, monthOf } from "../std/calendar.ts";
import type { Clock } from "../std/clock.ts";
import { type ChunkRecord, type Rates, type Refusal, type Store, StoreDown, type Usage } from "../store/store.ts";
import { costOf, maximumCost } from "./prices.ts";

export interface Priced {
  readonly runId: string;
  readonly accountId: string;
  readonly model: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** What a chunk leaves behind besides its price. */
export type Left = Pick<ChunkRecord, "session" | "observation">;

export interface MeterOptions {
  readonly store: Pick<Store, "hold" | "release" | "settleChunk">;
  readonly clock: Clock;
  readonly rates: (model: string) => Rates;
  /** The longest that a run may take, milliseconds. */
  readonly runMs: number;
}

export class Meter {
  constructor(private readonly options: MeterOptions) {}

  /** Failures: `payment_required`, `insufficient_credit`, `spend_limit_exceeded`, `billing_unavailable`. */
  async hold(priced: Priced): Promise<Hold | Failure> {
    const { store, clock, runMs } = this.options;
    const { runId, accountId, model, promptTokens, completionTokens } = priced;
    const rates = this.options.rates(model);
    const at = Math.floor(clock.unixMs() / 1000);
    const amount = maximumCost(promptTokens, completionTokens, rates);
    const outcome = await store.hold({
      runId,
      accountId,
      model,
      amount,
      rates,
      at,
      day: dayOf(at),
      month: monthOf(at),
      expiresAt: at + Math.ceil(runMs / 1000) + LIMITS.holdGraceSeconds,
    });
    if (outcome === "held") return new Hold(this.options, priced, rates, amount);
    if (outcome instanceof StoreDown) {
      // It may have been done: given back here, or by its expiry.
      if (outcome.outcomeUnknown) void store.release({ runId, accountId });
      return new Failure(EVERY.billing_unavailable, "billing is down, nothing ran; retry with backoff", {
        retryAfterSeconds: 1,
        detail: `store: ${outcome.reason}`,
      });
    }
    if (outcome === "account_unknown") {
      return new Failure(
        EVERY.invalid_api_key,
        "the account of this API key is gone; create a key with 'tendon login'",
      );
    }
    return refused(outcome);
  }
}

function refused(refusal: Refusal): Failure {
  const messages: Record<Refusal, string> = {
    payment_required: "the account has neither a payment method nor credit; add credit and send the request again",
    insufficient_credit: "the credit that is left does not cover what this request may cost at most; add credit",
    spend_limit_exceeded: "the request could cross the account's monthly spend limit; raise it, or wait for next month",
  };
  return new Failure(EVERY[refusal], `${messages[refusal]}; nothing ran`);
}

/** Money that a run holds; it ends in `settle` or `release`. */
export class Hold {
  constructor(
    private readonly options: MeterOptions,
    private readonly priced: Priced,
    private readonly rates: Rates,
    private readonly amount: bigint,
  ) {}

  /** Price and record in one durable step. `known`: the observation was answered before. */
  settle(usage: Usage, left: Left): Promise<"kept" | "known" | "not_held" | StoreDown> {
    const { runId, accountId } = this.priced;
    const at = Math.floor(this.options.clock.unixMs() / 1000);
    const cost = costOf(usage, this.rates);
    assert(cost <= this.amount, "a run costs at most what was held for it");
    return this.options.store.settleChunk({ runId, accountId, usage, cost, at, ...left });
  }

  /** Nobody waits for it: what is not given back now is when the hold expires. */
  release(): void {
    const { runId, accountId } = this.priced;
    void this.options.store.release({ runId, accountId });
  }
}
