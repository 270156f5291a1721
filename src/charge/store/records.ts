/** The records of money. Amounts are nano-dollars. */

/** Nano-dollars per unit at the opening of the charge. */
export interface Rates {
  readonly prompt: bigint;
  readonly cachedPrompt: bigint;
  readonly completion: bigint;
}

export interface Usage {
  /** Cached ones are included. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Tokens, or the rows of a robot's chunk. */
  readonly completionTokens: number;
}

/** The id of a charge is that of the answer that it pays. */
export interface ChargeKey {
  readonly chargeId: string;
  readonly accountId: string;
}

/** A charge that is about to be opened, with its maximum cost. */
export interface NewCharge extends ChargeKey {
  /** The id of the model that is priced. */
  readonly item: string;
  readonly amount: bigint;
  readonly rates: Rates;
  /** The submission by the wall clock, with its day and month. */
  readonly at: number;
  readonly day: number;
  readonly month: number;
  /** Seen time from which on any node may give the money back. */
  readonly expiresAt: number;
}

export interface Settlement extends ChargeKey {
  readonly usage: Usage;
  /** The price of the usage, at most what is held. */
  readonly cost: bigint;
  /** Seen time. */
  readonly at: number;
}

/** Reasons against a hold, by their codes of the interface. */
export type HoldRefusal = "payment_required" | "insufficient_credit" | "spend_limit_exceeded";

/** `account_unknown`: the account was removed. */
export type HoldOutcome = "held" | "account_unknown" | HoldRefusal;

/** A payment; money that is taken back where `amount` is below zero. `transferId` makes a repeat harmless. */
export interface Credit {
  readonly accountId: string;
  readonly transferId: string;
  readonly amount: bigint;
  readonly at: number;
  readonly month: number;
}

export interface UsageDay extends Usage {
  readonly day: number;
  readonly item: string;
  readonly charges: number;
  readonly cost: bigint;
}

export interface LedgerReport {
  readonly entries: bigint;
  /** The sum of all entries; 0 in a sound ledger. */
  readonly sum: bigint;
  /** The first row that is off, and how; undefined: the ledger is sound. */
  readonly problem: string | undefined;
}
