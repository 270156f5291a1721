/** Charges: the most that a piece of work can cost is held before it begins, and settled at its real cost or given back. */

import { LIMITS } from "../limits.ts";
import { assert } from "../std/assert.ts";
import { dayOf, monthOf } from "../std/calendar.ts";
import { unixSeconds } from "../std/clock.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import type { Log } from "../std/log.ts";
import type { Counter } from "../std/metrics.ts";
import { type SeenClock, seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { ChargeStore } from "./store/charges.ts";
import type { ChargeKey, HoldOutcome, HoldRefusal, NewCharge, Rates, Settlement, Usage } from "./store/records.ts";

/** `expires_at` of a hold that does not end by its time: a durable record owns it, such as a job's, and ends it. */
const NO_EXPIRY = Number.MAX_SAFE_INTEGER;

export interface HoldRequest extends Pick<NewCharge, "chargeId" | "accountId" | "item" | "rates"> {
  /** The most that the work can use. */
  readonly max: Pick<Usage, "promptTokens" | "completionTokens">;
  /** The longest that the work may take; afterwards its node is taken to be dead. `none`: the record of the work ends the hold. */
  readonly deadlineMs: number | "none";
}

/** Money that is held; it ends in `settle` or `release`. */
export interface Charge extends Pick<NewCharge, "chargeId" | "accountId" | "item" | "rates"> {
  /** Nano-dollars. */
  readonly held: bigint;
}

/**
 * A surface's store operation: opens the charge with a record of its own, in one transaction. What it says besides the outcomes
 * of a hold, an object, is the caller's: then nothing is held.
 */
export type Opening<R extends object> = (charge: NewCharge) => Promise<HoldOutcome | R | StoreDown>;

/** A surface's store operation: records the settlement and the result of the work in one transaction. */
export type Effect<R> = (settlement: Settlement) => Promise<R | StoreDown>;

export interface ChargesOptions {
  readonly store: Pick<ChargeStore, "hold" | "release" | "affords">;
  readonly clock: SeenClock;
  readonly log: Log;
  /** Counts usage whose price was above its hold, by `item`. */
  readonly clamped: Pick<Counter<"item">, "inc">;
}

export class Charges {
  constructor(private readonly options: ChargesOptions) {}

  /** Failures: `payment_required`, `insufficient_credit`, `spend_limit_exceeded`, `billing_unavailable`. */
  async hold<R extends object = never>(
    { chargeId, accountId, item, rates, max, deadlineMs }: HoldRequest,
    open: Opening<R> = (charge) => this.options.store.hold(charge),
  ): Promise<Charge | Failure | R> {
    const { clock } = this.options;
    // The day and the month are those of the calendar, as the clock shows it now; the hold lasts for a span.
    const at = unixSeconds(clock);
    // All prompt tokens at the uncached rate, which is the higher one (config/robot.ts; a provider's are checked likewise).
    const amount = costOf({ ...max, cachedTokens: 0 }, rates);
    const outcome = await open({
      chargeId,
      accountId,
      item,
      amount,
      rates,
      at,
      day: dayOf(at),
      month: monthOf(at),
      expiresAt: deadlineMs === "none" ? NO_EXPIRY : seenSeconds(clock) + holdSeconds(deadlineMs),
    });
    if (outcome === "held") return { chargeId, accountId, item, rates, held: amount };
    if (outcome instanceof StoreDown) {
      // The hold may exist. If this release fails as well, it expires by itself.
      if (outcome.outcomeUnknown) this.release({ chargeId, accountId });
      return billingDown(outcome);
    }
    return typeof outcome === "string" ? refused(outcome) : outcome;
  }

  /** Why the account could not pay for such work now; nothing is held. Failures: as of `hold`. */
  async unpayable({
    accountId,
    rates,
    max,
  }: Pick<HoldRequest, "accountId" | "rates" | "max">): Promise<Failure | undefined> {
    const amount = costOf({ ...max, cachedTokens: 0 }, rates);
    const outcome = await this.options.store.affords({
      accountId,
      amount,
      month: monthOf(unixSeconds(this.options.clock)),
    });
    if (outcome === "affords") return undefined;
    return outcome instanceof StoreDown ? billingDown(outcome) : refused(outcome);
  }

  /**
   * The price of the usage, recorded by `effect`. The account was promised that it pays at most what is held, so a price above
   * it, such as a provider's usage beyond what was asked for, costs the hold.
   */
  settle<R>(
    { chargeId, accountId, item, rates, held }: Charge,
    usage: Usage,
    effect: Effect<R>,
  ): Promise<R | StoreDown> {
    const price = costOf(usage, rates);
    if (price > held) {
      this.options.clamped.inc({ item });
      this.options.log.error("price above the hold", { charge: chargeId, item, price: `${price}`, held: `${held}` });
    }
    return effect({
      chargeId,
      accountId,
      usage,
      cost: price > held ? held : price,
      at: seenSeconds(this.options.clock),
    });
  }

  /** Returns at once. If the release fails, the hold expires by itself. */
  release({ chargeId, accountId }: ChargeKey): void {
    this.options.store
      .release({ chargeId, accountId })
      .catch((error: unknown) => this.options.log.error("release fault", { charge: chargeId, stack: String(error) }));
  }
}

function holdSeconds(deadlineMs: number): number {
  return Math.ceil(deadlineMs / 1000) + LIMITS.holdGraceSeconds;
}

/** Nano-dollars. Cached prompt tokens are part of the prompt tokens and have a rate of their own. */
function costOf({ promptTokens, cachedTokens, completionTokens }: Usage, rates: Rates): bigint {
  assert(cachedTokens <= promptTokens, "no more tokens are cached than there are");
  return (
    BigInt(promptTokens - cachedTokens) * rates.prompt +
    BigInt(cachedTokens) * rates.cachedPrompt +
    BigInt(completionTokens) * rates.completion
  );
}

export function billingDown({ reason }: Pick<StoreDown, "reason">): Failure {
  return new Failure(EVERY.billing_unavailable, "billing is down, nothing ran; retry with backoff", {
    retryAfterSeconds: 1,
    detail: `store: ${reason}`,
  });
}

function refused(refusal: HoldRefusal | "account_unknown"): Failure {
  if (refusal === "account_unknown") {
    return new Failure(EVERY.invalid_api_key, "the account of this API key is gone; create a key with 'tendon login'");
  }
  const messages: Record<HoldRefusal, string> = {
    payment_required: "the account has neither a payment method nor credit; add credit and send the request again",
    insufficient_credit: "the credit that is left does not cover what this request may cost at most; add credit",
    spend_limit_exceeded: "the request could cross the account's monthly spend limit; raise it, or wait for next month",
  };
  return new Failure(EVERY[refusal], `${messages[refusal]}; nothing ran`);
}
