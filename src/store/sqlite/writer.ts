/**
 * The loop of the writer thread, the only place that changes the database. Its entry point is service/writer.ts.
 *
 * What waits becomes one commit. What must be durable is answered when a sync of the log that began after it has ended. One
 * sync runs at a time. On a slow disk it runs beside the next commits, so that a hold, which need not be durable, does not wait
 * for it (sync.ts).
 *
 * After a failed sync nothing is written any more. Linux reports such an error once, and then treats what it could not write as
 * written. The next sync would succeed although a part of the log is missing, and the next start loses all that follows it.
 */
import type { Database } from "bun:sqlite";
import { closeSync, openSync } from "node:fs";
import { type Domains, everyWrite } from "../domain.ts";
import type { WriteCall } from "../store.ts";
import { openWriter } from "./connection.ts";
import { DISK_ADVICE } from "./folder.ts";
import { commitGroup, type WriteReply, type WriteRequest, warmGroup } from "./group.ts";
import { migrate } from "./migrate.ts";
import { closeSqlite } from "./statements.ts";
import { LogSync } from "./sync.ts";

export type ToWriter =
  | { readonly kind: "open"; readonly path: string }
  | { readonly kind: "write"; readonly request: WriteRequest }
  /** Writes that are taken back at once. */
  | { readonly kind: "warm"; readonly id: number; readonly calls: readonly WriteCall[] }
  | { readonly kind: "ping"; readonly id: number }
  | { readonly kind: "close" };

export type FromWriter =
  | { readonly kind: "opened"; readonly problem?: string }
  | { readonly kind: "replies"; readonly replies: readonly WriteReply[] }
  /** The store stays down: a write that was not answered may be done, and may be lost. */
  | { readonly kind: "failed"; readonly message: string }
  /** The log has grown enough to be copied into the database. */
  | { readonly kind: "grown" }
  | { readonly kind: "closed" };

/** The log is copied into the database after this time without a write. */
const IDLE_MS = 1_000;
/** Writes without a pause after which the log is copied too. Each adds pages to the log, a chunk about 8. A copy slows the syncs beside it. */
const GROWN_WRITES = 512;

/** The timing of the loop's steps; the simulation puts them into an order of its choice. */
export interface Pace {
  /** Runs `step` after the messages that have arrived by now were received. */
  soon(step: () => void): void;
  sync(log: number, done: (error: Error | null) => void): void;
  /** The returned function cancels it. */
  after(ms: number, due: () => void): () => void;
}

const logSync = new LogSync();

const THREAD: Pace = {
  soon: setImmediate,
  sync: (log, done) => logSync.sync(log, done),
  after: (ms, due) => {
    const timer = setTimeout(due, ms);
    return () => clearTimeout(timer);
  },
};

/** Serves the messages of the thread that made this one; `answer` sends to it. */
export class WriterLoop {
  private readonly writes;
  private db: Database | undefined;
  /** The log beside the database, which is the same file until the database is closed. */
  private log: number | undefined;
  private waiting: WriteRequest[] = [];
  /** Replies to writes that are committed and not yet known to be on the disk. */
  private unsynced: WriteReply[] = [];
  private syncing = false;
  private failed = false;
  /** Called when nothing is left to be synced. */
  private synced: (() => void) | undefined;
  /** Writes since the log was last reported as grown. */
  private added = 0;
  private notIdle = () => {};

  constructor(
    domains: Domains,
    private readonly answer: (message: FromWriter) => void,
    private readonly pace = THREAD,
  ) {
    this.writes = new Map(everyWrite(domains).map((operation) => [operation.key, operation]));
  }

  receive(message: ToWriter): void {
    if (this.failed) return;
    if (message.kind === "open") {
      this.open(message.path);
    } else if (message.kind === "close") {
      this.close();
    } else if (message.kind === "warm") {
      if (this.db) warmGroup(this.db, this.writes, message.calls);
      this.answer({ kind: "replies", replies: [{ id: message.id }] });
    } else if (message.kind === "ping") {
      this.answer({ kind: "replies", replies: [{ id: message.id }] });
    } else if (this.waiting.push(message.request) === 1) {
      // Requests that arrive while a commit runs become the next group.
      this.pace.soon(() => this.commitWaiting());
    }
  }

  private open(path: string): void {
    try {
      const db = openWriter(path);
      this.db = db;
      const problem = migrate(db);
      // An empty transaction makes the file of the log, even if no migration ran.
      db.run("BEGIN IMMEDIATE");
      db.run("COMMIT");
      // After a kill, or a disk error, the log may be in memory only; the copy is synced.
      db.run("PRAGMA wal_checkpoint(TRUNCATE)");
      this.log = openSync(`${path}-wal`, "r+");
      this.answer(problem === undefined ? { kind: "opened" } : { kind: "opened", problem });
    } catch (error) {
      this.answer({ kind: "opened", problem: `${(error as Error).message}; ${DISK_ADVICE}` });
    }
  }

  private commitWaiting(): void {
    const requests = this.waiting;
    this.waiting = [];
    if (!this.db || requests.length === 0) return;
    const replies = commitGroup(this.db, this.writes, requests);
    const soon = (index: number) => this.writes.get(requests[index]?.key ?? "")?.durable === false;
    const early = replies.filter(({ down }, index) => down !== undefined || soon(index));
    if (early.length > 0) this.answer({ kind: "replies", replies: early });
    this.unsynced.push(...replies.filter((reply) => !early.includes(reply)));
    this.sync();
    this.added += requests.length;
    this.notIdle();
    if (this.added >= GROWN_WRITES) this.grown();
    else this.notIdle = this.pace.after(IDLE_MS, () => this.grown());
  }

  private grown(): void {
    this.added = 0;
    this.answer({ kind: "grown" });
  }

  /** Syncs the log for all that wait, if no sync runs; its end begins the next one. */
  private sync(): void {
    if (this.syncing || this.log === undefined) return;
    if (this.unsynced.length === 0) {
      this.synced?.();
      return;
    }
    const replies = this.unsynced;
    this.unsynced = [];
    this.syncing = true;
    this.pace.sync(this.log, (error) => {
      if (error) return this.fail(error);
      this.syncing = false;
      this.answer({ kind: "replies", replies });
      this.sync();
    });
  }

  private fail({ message }: Error): void {
    this.failed = true;
    this.notIdle();
    this.waiting = [];
    this.answer({ kind: "failed", message });
    try {
      // This transaction never ends, so that no command beside this server writes after the missing part.
      this.db?.run("BEGIN IMMEDIATE");
    } catch {
      // A disk that failed may refuse this as well.
    }
  }

  private close(): void {
    this.notIdle();
    this.commitWaiting();
    this.synced = () => {
      this.synced = undefined;
      if (this.log !== undefined) closeSync(this.log);
      this.log = undefined;
      if (this.db) closeSqlite(this.db);
      this.db = undefined;
      this.answer({ kind: "closed" });
    };
    if (this.log === undefined) this.synced();
    else this.sync();
  }
}
