/** Charges: the maximum cost of a piece of work is held before it begins, and settled at its real cost or given back. */
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

/** `expires_at` of a hold that does not end by its time: a durable record, such as a job's, owns it and ends it. */
const NO_EXPIRY = Number.MAX_SAFE_INTEGER;

export interface HoldRequest extends Pick<NewCharge, "chargeId" | "accountId" | "item" | "rates"> {
  /** The maximum usage of the work. */
  readonly max: Pick<Usage, "promptTokens" | "completionTokens">;
  /** The maximum time of the work; afterwards its node is taken to be dead. `none`: the record of the work ends the hold. */
  readonly deadlineMs: number | "none";
}

/** Money that is held; it ends in `settle` or `release`. */
export interface Charge extends Pick<NewCharge, "chargeId" | "accountId" | "item" | "rates"> {
  /** Nano-dollars. */
  readonly held: bigint;
}

/**
 * A surface's store operation, which opens the charge together with the surface's own record, in one transaction. An outcome that
 * is an object is for the caller: then nothing is held.
 */
export type Opening<R extends object> = (charge: NewCharge) => Promise<HoldOutcome | R | StoreDown>;

/** A surface's store operation, which records the settlement and the result of the work in one transaction. */
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
    // Day and month follow the wall clock; the hold lasts for a span of seen time.
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

  /** The failure with which `hold` would answer now; nothing is held. */
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
   * Has `effect` record the price of the usage. The account was promised that it pays at most what is held. So a price above that, such
   * as for a provider's usage beyond the request, costs the hold.
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

/** The price in nano-dollars. Cached prompt tokens are part of the prompt tokens and have another rate. */
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

/** Releases the holds of nodes that died. `all`: no other process has this store, so everything that is held belongs to one that ended. */
export async function expireHolds(
  store: Pick<ChargeStore, "holdsExpire">,
  clock: SeenClock,
  log: Log,
  which: "overdue" | "all" = "overdue",
): Promise<void> {
  const before = which === "all" ? NO_EXPIRY : seenSeconds(clock);
  await untilDone(log, "holds not expired", () => store.holdsExpire({ before }));
}

/** Forgets charges that were settled more than `days` ago; their sums stay in the ledger and in the days of usage. */
export async function forgetUsage(
  store: Pick<ChargeStore, "usageForget">,
  clock: SeenClock,
  log: Log,
  days: number,
): Promise<void> {
  const before = seenSeconds(clock) - days * 86_400;
  await untilDone(log, "old usage not summed up", () => store.usageForget({ before }));
}

/** Works in bounded parts, between which others write. */
export async function untilDone(
  log: Log,
  failed: string,
  step: () => Promise<"done" | "more" | StoreDown>,
): Promise<void> {
  for (;;) {
    const outcome = await step();
    if (outcome instanceof StoreDown) log.error(failed, { reason: outcome.reason });
    if (outcome !== "more") return;
  }
}
