/**
 * The common part of every store. A domain is a closed list of operations, one per purpose. `service/domains.ts` composes the domains.
 *
 * Operations never throw: their failure is a `StoreDown`. Each can be repeated after an answer that was lost, with the same outcome.
 * The exceptions do no harm. No caller reads the outcome of `release`. `attempt` counts once more. `devicePoll` of a pending login asks
 * for a longer interval. `...Expire` and `...Forget` tell whether there is more now. If a run or an upload was deleted since,
 * `runComplete`, `joinBegin`, `uploadToken`, `uploadLost` and `partCommit` do not find it. If another part of the same number replaced
 * a part since, the end of the upload finds it changed, and the client sends it again.
 *
 * Amounts are nano-dollars. Times are Unix seconds: of the wall clock where people read them, or where they date a row
 * (`created_at`, `last_used_at`, `revoked_at`, `submitted_at`, `completed_at`, `stored_at`, entries); of seen time (std/seen-clock.ts)
 * where a span begins or ends (`expires_at`, `settled_at`, `last_at`, `ended_at`, `resets_at`, `polled_at`, `joining_at`, `created_at` of
 * sign-ins and device logins, `at` of all but entries). A day is a number of days since 1970-01-01, a month YYYYMM, both UTC.
 */
/** The failure of an operation; `reason` is for the log, never for a client. */
export class StoreDown {
  constructor(
    readonly reason: string,
    /** The operation may have been done nevertheless. */
    readonly outcomeUnknown = false,
  ) {}
}

/** The identity of a database server; undefined where the server does not tell it. */
export interface ServerIdentity {
  readonly system: string | undefined;
  readonly timeline: string | undefined;
  readonly database: string | undefined;
}

/** A transfer of the ledger, by the id of its entries. */
export interface Transfer {
  readonly id: string;
  readonly accountId: string;
  /** Nano-dollars that the account paid; a negative amount is one that it got. */
  readonly amount: bigint;
  readonly at: number;
}

/** The database came back as another server, or without transfers that were confirmed as durable. */
export interface LedgerChange {
  /** The number of newest transfers that were looked for. */
  readonly checked: number;
  /** The missing ones, oldest first. */
  readonly missing: readonly Transfer[];
  readonly before: ServerIdentity | undefined;
  readonly now: ServerIdentity | undefined;
}

/** A write in the form that crosses to the writer thread. */
export interface WriteCall {
  /** The operation (domain.ts). */
  readonly key: string;
  readonly argument: unknown;
}

export interface StoreBase {
  /** Reports every `LedgerChange`, earlier ones too. Only a store whose server may be replaced has it. */
  onLedgerChange?(tell: (change: LedgerChange) => void): void;
  /** No other process holds money or sessions here: at the start, all holds belong to a process that ended. */
  readonly exclusive: boolean;
  /**
   * Does these writes in one step and takes them back, so that the first of their kind finds everything prepared. No reader sees them.
   * Only a store that prepares something has it.
   */
  warmUp?(writes: readonly WriteCall[]): Promise<void>;
  /** Undefined when reading and writing both work. */
  ping(): Promise<StoreDown | undefined>;
  /** Finishes pending writes, then closes; later calls answer `StoreDown`. */
  close(): Promise<void>;
}
