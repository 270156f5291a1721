/**
 * The store as the service sees it: a closed list of operations, one per purpose. No SQL leaves this folder.
 * Operations never throw; what the store cannot do is a `StoreDown`. Each can be repeated after an answer that was lost: it
 * then says what the first one said. Those that say something else harm nobody: nobody asks what a `release` says;
 * `attempt` counts once more, and `devicePoll` of a login that waits asks for a longer pause; `...Expire` and `...Forget`
 * say whether there is more now.
 *
 * Amounts are nano-dollars. Times are Unix seconds. A day is a number of days since 1970-01-01, a month YYYYMM, both UTC.
 */
import type { DeviceLogin, DevicePoll, Link, Redeemed, SignIn } from "./people.ts";

export interface Account {
  readonly id: string;
  readonly email: string;
  readonly createdAt: number;
  readonly paymentMethod: boolean;
  /** All that was ever paid in, less what was taken back. */
  readonly credits: bigint;
  /** All that was ever settled. */
  readonly settled: bigint;
  /** What runs that are under way may cost. */
  readonly held: bigint;
  /** Per month. */
  readonly spendLimit: bigint | undefined;
  /** The latest month in which something was settled, and how much. */
  readonly month: number;
  readonly monthSettled: bigint;
  /** argon2id; undefined: nobody can sign in to it. */
  readonly password: string | undefined;
}

export interface NewAccount {
  readonly id: string;
  readonly email: string;
  readonly createdAt: number;
  /** Paid in from the start; its entries are those of the account's id. */
  readonly credit: bigint;
  readonly spendLimit: bigint | undefined;
  readonly paymentMethod: boolean;
  readonly password: string | undefined;
}

/** An API key at rest: its public id and the SHA-256 of the whole key. */
export interface KeyRecord {
  readonly publicId: string;
  /** 32 bytes. */
  readonly sha256: Uint8Array;
  readonly accountId: string;
  readonly name: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | undefined;
  /** undefined while the key is valid. */
  readonly revokedAt: number | undefined;
}

export type NewKey = Omit<KeyRecord, "lastUsedAt" | "revokedAt">;

/** A robot session; requests without a `session_id` stand under the empty one. */
export interface SessionKey {
  readonly accountId: string;
  readonly model: string;
  readonly sessionId: string;
}

export interface ObservationKey extends SessionKey {
  readonly observationId: string;
}

/** An answer at rest: its head as JSON text, its rows as little-endian float32. */
export interface StoredAnswer {
  readonly head: string;
  readonly rows: Uint8Array;
}

/** An observation that was answered. */
export interface AnsweredObservation {
  /** SHA-256 of its content, 32 bytes; undefined where the record is from before an upgrade. */
  readonly digest: Uint8Array | undefined;
  readonly generationId: string;
  /** Zero-based chunk index; null where the request had no `session_id`. */
  readonly step: number | null;
  /** undefined once it is no longer retained. */
  readonly answer: StoredAnswer | undefined;
}

/** Nano-dollars per unit, as they were when the run was submitted. */
export interface Rates {
  readonly prompt: bigint;
  readonly cachedPrompt: bigint;
  readonly completion: bigint;
}

export interface Usage {
  /** Cached ones included. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** A robot run's rows. */
  readonly completionTokens: number;
}

/** A run that is about to begin, and the most that it may cost. */
export interface NewRun {
  readonly runId: string;
  readonly accountId: string;
  readonly model: string;
  readonly amount: bigint;
  readonly rates: Rates;
  /** Of submission. */
  readonly at: number;
  readonly day: number;
  readonly month: number;
  /** From then on anybody may give the money back. */
  readonly expiresAt: number;
}

/** A run's end, and what its chunk leaves behind, in one step. */
export interface ChunkRecord {
  readonly runId: string;
  readonly accountId: string;
  readonly usage: Usage;
  /** At most what is held. */
  readonly cost: bigint;
  readonly session: SessionKey | undefined;
  readonly observation: (ObservationKey & AnsweredObservation) | undefined;
  readonly at: number;
}

/** Replies of sessions that were last active before, and records of those that were last active before. */
export interface Retention {
  readonly repliesBefore: number;
  readonly recordsBefore: number;
}

/** What one model cost on one day. */
export interface UsageDay extends Usage {
  readonly day: number;
  readonly model: string;
  readonly runs: number;
  readonly cost: bigint;
}

/** What `tendon admin ledger check` says. */
export interface LedgerReport {
  readonly entries: bigint;
  /** Of all entries; zero in a sound ledger. */
  readonly sum: bigint;
  /** The first row that is off, and how; undefined: the ledger is sound. */
  readonly problem: string | undefined;
}

/** The store did not do what was asked; `reason` is for the log, never for a client. */
export class StoreDown {
  constructor(
    readonly reason: string,
    /** Whether it may have been done all the same. */
    readonly outcomeUnknown = false,
  ) {}
}

/** Why a hold is refused; codes of the interface. */
export type Refusal = "payment_required" | "insufficient_credit" | "spend_limit_exceeded";

/** Why an account gets no further key: it has neither payment method nor credit, or as many keys as it may have. */
export type NoKeys = "account_unknown" | "payment_required" | "too_many";

/** Operations that change something. Each is one atomic step, durable when it resolves unless its line says otherwise. */
export interface Writes {
  accountAdd(account: NewAccount): "added" | "email_taken";
  keyAdd(key: NewKey): "added" | "id_taken" | NoKeys;
  /** `accountId`: only a key of that account. */
  keyRevoke(revocation: { publicId: string; accountId?: string | undefined; at: number }): "revoked" | "unknown";
  keysUsed(uses: readonly { publicId: string; at: number }[]): "done";

  /** Pays in, or takes back where `amount` is below zero. `transferId` makes a repeat harmless. */
  credit(credit: {
    accountId: string;
    transferId: string;
    amount: bigint;
    at: number;
    month: number;
  }): "credited" | "account_unknown";
  spendLimit(change: { accountId: string; limit: bigint | undefined }): "changed" | "account_unknown";

  /** Checks and hold in one step. Atomic, not durable. */
  hold(run: NewRun): "held" | "account_unknown" | Refusal;
  /** The run came to nothing. Atomic, not durable. */
  release(run: { runId: string; accountId: string }): "released" | "unknown";
  /**
   * `known`: the observation was answered before; `not_held`: the run's money was given back meanwhile. Then nothing is kept.
   */
  settleChunk(chunk: ChunkRecord): "kept" | "known" | "not_held";
  /** A session that is open before its first chunk; once closed its id answers 410. */
  sessionOpen(session: SessionKey & { readonly at: number }): "kept";
  /** Gives back, in bounded parts, what runs hold that should have ended before. */
  holdsExpire(limit: { before: number }): "done" | "more";

  /** Forgets a bounded part of what is older; "more" when there may be more of it. */
  chunksForget(retention: Retention): "done" | "more";
  /** Sums a bounded part of the runs that were settled before into one entry per account and month. */
  usageForget(retention: { before: number }): "done" | "more";

  /** Operator links replace each other. */
  linkAdd(link: Link): "added";
  linkRedeem(use: {
    tokenSha256: Uint8Array;
    now: number;
    newAccountId: string;
    email: string;
    password: string;
  }): Redeemed | "link_unknown" | "email_taken";
  /** Ends its other sign-ins, and its links. */
  passwordSet(change: { accountId: string; password: string; keepSignIn: Uint8Array }): "changed";
  /** Only as long as `password`, the hash that was found right, is that of the account. */
  signInAdd(signIn: SignIn & { readonly password: string }): "added" | "password_changed";
  signInRemove(signIn: { tokenSha256: Uint8Array }): "removed";
  deviceAdd(login: DeviceLogin): "added" | "code_taken";
  deviceDecide(decision: {
    userCodeSha256: Uint8Array;
    approve: boolean;
    accountId: string;
    signInSha256: Uint8Array;
    now: number;
  }): "decided" | "gone";
  /** `key` is added when the login is approved, with the device's name, to the account of the approving sign-in. */
  devicePoll(poll: { deviceSha256: Uint8Array; key: Omit<NewKey, "accountId" | "name">; now: number }): DevicePoll;
  /** Counts one attempt; `refused` once there were `max` in the window. */
  attempt(attempt: {
    name: string;
    max: number;
    windowSeconds: number;
    now: number;
  }): "allowed" | { readonly refusedSeconds: number };
  peopleForget(limit: { now: number }): "done";
}

export interface Reads {
  accountByEmail(email: string): Account | undefined;
  accountById(id: string): Account | undefined;
  accounts(all: "all"): readonly Account[];
  keyByPublicId(publicId: string): KeyRecord | undefined;
  /** The valid ones, then those revoked last; at most LIMITS.keysListedMax. */
  keysOf(accountId: string): readonly KeyRecord[];
  mayHaveKeys(accountId: string): "yes" | NoKeys;
  /** Changes with every revocation. */
  keysRevision(all: "all"): bigint;
  usageDays(of: { accountId: string; fromDay: number }): readonly UsageDay[];
  ledgerCheck(all: "all"): LedgerReport;
  /** When the session was last active; undefined: it never opened, or that is forgotten. */
  sessionLastAt(session: SessionKey): number | undefined;
  observation(key: ObservationKey): AnsweredObservation | undefined;
  /** Whether nobody can sign in yet. */
  operatorMissing(all: "all"): boolean;
  linkByToken(link: { tokenSha256: Uint8Array; now: number }): (Link & { readonly email: string }) | undefined;
  signInByToken(signIn: { tokenSha256: Uint8Array; now: number }): (SignIn & { readonly email: string }) | undefined;
  deviceByUserCode(login: { userCodeSha256: Uint8Array; now: number }): DeviceLogin | undefined;
}

/** The same operations as a caller has them: asynchronous, and able to say that the store is down. */
type Asynchronous<T> = {
  [K in keyof T]: T[K] extends (argument: infer A) => infer R ? (argument: A) => Promise<R | StoreDown> : never;
};

export interface Store extends Asynchronous<Writes>, Asynchronous<Reads> {
  /** Whether no other process holds money or sessions here: what is held at the start is then nobody's. */
  readonly exclusive: boolean;
  /** Undefined when reading and writing both work. */
  ping(): Promise<StoreDown | undefined>;
  /** Ends what waits, then closes; later calls answer `StoreDown`. */
  close(): Promise<void>;
}
