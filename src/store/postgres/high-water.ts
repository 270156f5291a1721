/**
 * The ledger's high-water mark. A node remembers the newest transfers that the database has confirmed as durable. After a lost
 * connection, and at intervals, it checks that the server still has them. A server without them lacks the last commits, such as a
 * replica that was promoted too early. The node reports what is missing and repairs nothing: only it knows which answers were given,
 * and what they cost.
 *
 * A file keeps the mark, so that a process that starts after such a change notices it as well.
 */
import { LIMITS } from "../../limits.ts";
import { type Clock, sleep } from "../../std/clock.ts";
import { first, listed, type Steps } from "../steps.ts";
import type { LedgerChange, ServerIdentity, Transfer } from "../store.ts";
import { type Pool, Unanswered } from "./pool.ts";

/** The mark as a process leaves it to the next one. */
export interface MarkFile {
  read(): Promise<Mark | undefined>;
  write(mark: Mark): Promise<void>;
}

export interface Mark {
  readonly server: ServerIdentity | undefined;
  /** Oldest first. */
  readonly transfers: readonly Transfer[];
}

export class HighWater {
  /** Transfers by id, oldest first. */
  private readonly newest = new Map<string, Transfer>();
  private server: ServerIdentity | undefined;
  private tell: ((change: LedgerChange) => void) | undefined;
  private readonly untold: LedgerChange[] = [];
  /** A comparison runs; `again`: something was lost since it began. */
  private comparing = false;
  private again = false;
  private unwritten = false;
  private readonly timers: readonly (() => void)[];
  private closed = false;

  constructor(
    private readonly pool: Pick<Pool, "read">,
    private readonly clock: Clock,
    private readonly file: MarkFile,
  ) {
    this.timers = [
      clock.every(LIMITS.storeMarkMs, () => {
        this.write().catch(() => {});
      }),
      clock.every(LIMITS.storeLookMs, () => this.suspect()),
    ];
  }

  /** The mark of the process before this one, compared with the server before anything new is added to it. */
  async start(): Promise<void> {
    const kept = await this.file.read();
    this.server = kept?.server;
    for (const transfer of kept?.transfers ?? []) this.newest.set(transfer.id, transfer);
    await this.compare();
  }

  /** The database has confirmed it. */
  add(transfer: Transfer): void {
    this.newest.set(transfer.id, transfer);
    this.unwritten = true;
    if (this.newest.size <= LIMITS.storeMarksMax) return;
    const [oldest = ""] = this.newest.keys();
    this.newest.delete(oldest);
  }

  onChange(tell: (change: LedgerChange) => void): void {
    this.tell = tell;
    for (const change of this.untold.splice(0)) tell(change);
  }

  /** The address may lead to another server by now. */
  suspect(): void {
    this.again = true;
    if (this.comparing || this.closed) return;
    this.comparing = true;
    const run = async () => {
      while (this.again && !this.closed) {
        this.again = false;
        while (!this.closed && !(await this.compare())) await sleep(this.clock, LIMITS.storeAnswerMs);
      }
    };
    // A bug in it must not end the comparisons.
    run()
      .catch(() => {})
      .finally(() => {
        this.comparing = false;
      });
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const stop of this.timers) stop();
    await this.write();
  }

  /** False where the server cannot say yet. */
  private async compare(): Promise<boolean> {
    const asked = [...this.newest.values()];
    const found = await this.pool.read(() => present(asked));
    if (found instanceof Unanswered || found === "standby") return false;
    const now = await this.identity();
    const before = this.server;
    this.server = now;
    // What another database lacks, it never had.
    const isOther = before?.database !== undefined && now?.database !== undefined && before.database !== now.database;
    const missing = isOther ? [] : asked.filter(({ id, at }) => !found.ids.has(id) && at >= found.since);
    for (const { id, at } of asked) if (isOther || at < found.since) this.newest.delete(id);
    const replaced = before !== undefined && now !== undefined && !same(before, now);
    if (missing.length === 0 && !replaced) return true;
    for (const { id } of missing) this.newest.delete(id);
    const change = { checked: asked.length, missing, before, now };
    if (this.tell) this.tell(change);
    else this.untold.push(change);
    this.unwritten = true;
    return true;
  }

  /** Undefined where the server does not permit the questions. */
  private async identity(): Promise<ServerIdentity | undefined> {
    const system = await this.pool.read(systemId);
    const timeline = await this.pool.read(timelineId);
    const database = await this.pool.read(databaseId);
    if (system instanceof Unanswered && timeline instanceof Unanswered) return this.server;
    // A server that is just coming back answers one question and not the next one: it is no other one for that.
    return {
      database: database instanceof Unanswered ? this.server?.database : database,
      system: system instanceof Unanswered ? this.server?.system : system,
      timeline: timeline instanceof Unanswered ? this.server?.timeline : timeline,
    };
  }

  private async write(): Promise<void> {
    if (!this.unwritten) return;
    this.unwritten = false;
    const transfers = [...this.newest.values()].slice(-LIMITS.storeMarksKept);
    // A lost file hides only a change that happens while no process runs.
    await this.file.write({ server: this.server, transfers }).catch(() => {});
  }
}

function same(one: ServerIdentity, other: ServerIdentity): boolean {
  return one.system === other.system && one.timeline === other.timeline && one.database === other.database;
}

interface LedgerRows {
  readonly ids: ReadonlySet<string>;
  /** Seen time from which on the ledger has every transfer under its own id. */
  readonly since: number;
}

/** Those that the ledger has, in one statement of one server. A standby may yet get what it lacks. */
function* present(transfers: readonly Transfer[]): Steps<LedgerRows | "standby"> {
  const state = yield* first<{ standby: boolean; seen: bigint | null; ids: string | null }>(
    `SELECT pg_is_in_recovery() AS standby, (SELECT seconds FROM seen_time) AS seen,
            (SELECT string_agg(transfer, ' ') FROM entries WHERE book = 'account' AND transfer IN ${listed(1)}) AS ids`,
    JSON.stringify(transfers.map(({ id }) => id)),
  );
  if (state?.standby !== false) return "standby";
  const since = state.seen === null ? Number.NEGATIVE_INFINITY : Number(state.seen) - LIMITS.storeMarkSeconds;
  // Ids have no spaces.
  return { ids: new Set(state.ids?.split(" ")), since };
}

/** One server has many databases, and none of them gets the number of another one. */
function* databaseId(): Steps<string | undefined> {
  const text = "SELECT oid::text AS id FROM pg_database WHERE datname = current_database()";
  return (yield* first<{ id: string }>(text))?.id;
}

/** A server made by copying another one has its id; one made from a dump has not. */
function* systemId(): Steps<string | undefined> {
  return (yield* first<{ id: string }>("SELECT system_identifier::text AS id FROM pg_control_system()"))?.id;
}

/** Every promotion begins another one; the control file learns of it only with the next checkpoint, the name of the log at once. */
function* timelineId(): Steps<string | undefined> {
  return (yield* first<{ id: string }>("SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS id"))?.id;
}
