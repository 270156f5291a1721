/**
 * What every store has, whatever its domains are. A domain is a closed list of operations, one per purpose. `service/domains.ts`
 * composes the list of domains.
 *
 * Operations never throw: what the store cannot do is a `StoreDown`. Each can be repeated after an answer that was lost, and then
 * says what the first one said. The exceptions do no harm: nobody reads what a `release` says; `attempt` counts once more;
 * `devicePoll` of a pending login asks for a longer interval; `...Expire` and `...Forget` say whether there is more now. Of a run or
 * an upload that somebody deleted since, `runComplete`, `joinBegin`, `uploadToken`, `uploadLost` and `partCommit` say that it is not
 * there; a part that another one of its number replaced since is found changed when the upload is finished, and is sent again.
 *
 * Amounts are nano-dollars. Times are Unix seconds: of the wall clock where somebody reads them, or where they date a row
 * (`created_at`, `last_used_at`, `revoked_at`, `submitted_at`, `completed_at`, `stored_at`, entries); of seen time (std/seen-clock.ts)
 * where a span begins or ends (`expires_at`, `settled_at`, `last_at`, `ended_at`, `resets_at`, `polled_at`, `joining_at`, `created_at` of
 * sign-ins and device logins, `at` of all but entries). A day is a number of days since 1970-01-01, a month YYYYMM, both UTC.
 */
/** The store did not do what was asked; `reason` is for the log, never for a client. */
export class StoreDown {
  constructor(
    readonly reason: string,
    /** Whether it may have been done all the same. */
    readonly outcomeUnknown = false,
  ) {}
}

/** Which database server it is, as far as the server says so. */
export interface ServerIdentity {
  readonly system: string | undefined;
  readonly timeline: string | undefined;
  readonly database: string | undefined;
}

/** A transfer of the ledger, by the id of its entries. */
export interface Transfer {
  readonly id: string;
  readonly accountId: string;
  /** Nano-dollars that the account paid; below zero: that it got. */
  readonly amount: bigint;
  readonly at: number;
}

/** The database came back as another server, or without transfers that it had confirmed as durable. */
export interface LedgerChange {
  /** Newest transfers that were looked for. */
  readonly checked: number;
  /** Those that are not there, oldest first. */
  readonly missing: readonly Transfer[];
  readonly before: ServerIdentity | undefined;
  readonly now: ServerIdentity | undefined;
}

/** A write as it crosses to the thread that does it. */
export interface WriteCall {
  /** The operation (domain.ts). */
  readonly key: string;
  readonly argument: unknown;
}

export interface StoreBase {
  /** Reports every `LedgerChange`, earlier ones too. Only a store whose server may be replaced has it. */
  onLedgerChange?(tell: (change: LedgerChange) => void): void;
  /** Whether no other process holds money or sessions here: what is held at the start then belongs to a process that ended. */
  readonly exclusive: boolean;
  /**
   * Does these writes in one step and takes them back, so that the first of their kind waits for nothing that could have been prepared.
   * No reader sees them. Only a store that prepares something has it.
   */
  warmUp?(writes: readonly WriteCall[]): Promise<void>;
  /** Undefined when reading and writing both work. */
  ping(): Promise<StoreDown | undefined>;
  /** Finishes pending writes, then closes; later calls answer `StoreDown`. */
  close(): Promise<void>;
}
