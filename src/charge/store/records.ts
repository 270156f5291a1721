/** What the store keeps of money. Amounts are nano-dollars. */

/** Nano-dollars per unit, as they were when the charge was opened. */
export interface Rates {
  readonly prompt: bigint;
  readonly cachedPrompt: bigint;
  readonly completion: bigint;
}

export interface Usage {
  /** Cached ones included. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Tokens; the rows of a robot's chunk. */
  readonly completionTokens: number;
}

/** A charge, by the id of the answer that it is for. */
export interface ChargeKey {
  readonly chargeId: string;
  readonly accountId: string;
}

/** A charge that is about to be opened, and the most that it may cost. */
export interface NewCharge extends ChargeKey {
  /** What is priced: the id of a model. */
  readonly item: string;
  readonly amount: bigint;
  readonly rates: Rates;
  /** Submission by the wall clock, with its day and month. */
  readonly at: number;
  readonly day: number;
  readonly month: number;
  /** Seen time from which on any node may give the money back. */
  readonly expiresAt: number;
}

/** How a charge ends. */
export interface Settlement extends ChargeKey {
  readonly usage: Usage;
  /** The price of the usage, at most what is held. */
  readonly cost: bigint;
  /** Seen time. */
  readonly at: number;
}

/** Why a hold is refused; codes of the interface. */
export type HoldRefusal = "payment_required" | "insufficient_credit" | "spend_limit_exceeded";

/** How a hold ends; `account_unknown` after the account was removed. */
export type HoldOutcome = "held" | "account_unknown" | HoldRefusal;

/** Paid in, or taken back where `amount` is below zero. `transferId` makes a repeat harmless. */
export interface Credit {
  readonly accountId: string;
  readonly transferId: string;
  readonly amount: bigint;
  readonly at: number;
  readonly month: number;
}

/** What one item cost on one day. */
export interface UsageDay extends Usage {
  readonly day: number;
  readonly item: string;
  readonly charges: number;
  readonly cost: bigint;
}

/** What `tendon admin ledger check` says. */
export interface LedgerReport {
  readonly entries: bigint;
  /** The sum of all entries; 0 in a sound ledger. */
  readonly sum: bigint;
  /** The first row that is off, and how; undefined: the ledger is sound. */
  readonly problem: string | undefined;
}
