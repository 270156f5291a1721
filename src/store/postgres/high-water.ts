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
import { readText, writePrivate } from "../../std/file.ts";
import { first, listed, type Steps } from "../steps.ts";
import type { LedgerChange, ServerIdentity, Transfer } from "../store.ts";
import { type Pool, Unanswered } from "./pool.ts";

/** The mark in the form that a process leaves to the next one. */
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

  /** Compares the mark of the process before this one with the server, before anything is added to it. */
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

  /** False as long as the server cannot answer. */
  private async compare(): Promise<boolean> {
    const asked = [...this.newest.values()];
    const found = await this.pool.read(() => present(asked));
    if (found instanceof Unanswered || found === "standby") return false;
    const now = await this.identity();
    const before = this.server;
    this.server = now;
    // Another database never had these transfers, so it lacks none.
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
    const [system, timeline, database] = [
      await this.id("system"),
      await this.id("timeline"),
      await this.id("database"),
    ];
    if (system instanceof Unanswered && timeline instanceof Unanswered) return this.server;
    // A server that is just coming back may answer one question and not the next: it keeps its old answer.
    const kept = (name: keyof ServerIdentity, id: string | undefined | Unanswered) =>
      id instanceof Unanswered ? this.server?.[name] : id;
    return {
      system: kept("system", system),
      timeline: kept("timeline", timeline),
      database: kept("database", database),
    };
  }

  private async id(name: keyof ServerIdentity): Promise<string | undefined | Unanswered> {
    return await this.pool.read(function* () {
      return (yield* first<{ id: string }>(`SELECT ${IDS[name]} AS id`))?.id;
    });
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
  /** The seen time from which the ledger has every transfer under its id. */
  readonly since: number;
}

/** The transfers that the ledger has, by one statement of one server. A standby may still receive what it lacks. */
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

/** Expressions for the parts of a server's identity. Each is asked alone: a role may lack the right to one of them. */
const IDS: Readonly<Record<keyof ServerIdentity, string>> = {
  /** A copy of a server has its id; a server made from a dump has another. */
  system: "(SELECT system_identifier::text FROM pg_control_system())",
  /** A promotion begins another one. The log's name shows it at once, the control file only after a checkpoint. */
  timeline: "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)",
  /** A server gives each of its databases a number, never the same one twice. */
  database: "(SELECT oid::text FROM pg_database WHERE datname = current_database())",
};

/** A mark in a file of the data folder. */
export function markFile(path: string): MarkFile {
  return {
    read: async () => {
      const text = await readText(path).catch(() => undefined);
      return text === undefined ? undefined : parsed(text);
    },
    write: async (mark) => {
      const text = JSON.stringify(mark, (key, value) => (key === "amount" ? String(value) : value));
      await writePrivate(path, text);
    },
  };
}

/** A file that cannot be read counts as none. */
function parsed(text: string): Mark | undefined {
  try {
    const { server, transfers } = JSON.parse(text, (key, value) => (key === "amount" ? BigInt(value) : value)) as Mark;
    return { server: server ?? undefined, transfers };
  } catch {
    return undefined;
  }
}
