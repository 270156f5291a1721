/**
 * The writer thread: the only place that changes the database. An entry point of its own (a Worker), also in the
 * compiled executable. Messages in: `open`, writes, `ping`, `close`; messages out: see `FromWriter`.
 *
 * What waits becomes one commit; what must be durable is answered when a sync of the log that began after it has ended. One
 * sync runs at a time, beside the next commits, so that a hold, which need not be durable, never waits for the disk.
 *
 * After a sync that failed nothing is written any more. Linux reports such an error once, and takes what it could not write as
 * written: the next sync would succeed with a hole in the log, and all behind a hole is lost at the next start.
 */

import type { Database } from "bun:sqlite";
import { closeSync, fdatasync, openSync } from "node:fs";
import { openWriter } from "./connection.ts";
import { closeSqlite } from "./dialect.ts";
import { commitGroup, type WriteReply, type WriteRequest } from "./group.ts";
import { migrate } from "./migrations.ts";
import { NOT_DURABLE } from "./operations.ts";
import type { Writes } from "./store.ts";

export type ToWriter =
  | { readonly kind: "open"; readonly path: string }
  | { readonly kind: "write"; readonly request: WriteRequest }
  | { readonly kind: "ping"; readonly id: number }
  | { readonly kind: "close" };

export type FromWriter =
  | { readonly kind: "opened"; readonly problem?: string }
  | { readonly kind: "replies"; readonly replies: readonly WriteReply[] }
  /** For good: whatever was asked and not answered may be done, and may be lost. */
  | { readonly kind: "failed"; readonly message: string }
  /** The log is worth a copy into the database. */
  | { readonly kind: "grown" }
  | { readonly kind: "closed" };

declare const self: Worker;

/** Quiet time after which the log is copied into the database, */
const IDLE_MS = 1_000;
/** and writes after which a busy one is: each adds some pages to the log, a chunk's about eight. */
const GROWN_WRITES = 256;

let db: Database | undefined;
/** The log beside the database: the same file as long as the database is open. */
let log: number | undefined;
let waiting: WriteRequest[] = [];
/** Committed, and not yet known to be on the disk. */
let unsynced: WriteReply[] = [];
let syncing = false;
let failed = false;
/** Called when nothing is left to be synced. */
let synced: (() => void) | undefined;
/** Writes since the log was last worth a copy. */
let added = 0;
let idle: ReturnType<typeof setTimeout> | undefined;

function answer(message: FromWriter): void {
  self.postMessage(message);
}

function open(path: string): void {
  try {
    db = openWriter(path);
    const problem = migrate(db);
    // A look through the log makes the file, where migrating had nothing to do.
    db.run("BEGIN IMMEDIATE");
    db.run("COMMIT");
    // A killed server, or one whose disk failed, leaves a log that is perhaps only in memory; the copy is synced.
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    log = openSync(`${path}-wal`, "r+");
    answer(problem === undefined ? { kind: "opened" } : { kind: "opened", problem });
  } catch (error) {
    answer({ kind: "opened", problem: (error as Error).message });
  }
}

function commitWaiting(): void {
  const requests = waiting;
  waiting = [];
  if (!db || requests.length === 0) return;
  const replies = commitGroup(db, requests);
  const soon = (index: number) => NOT_DURABLE.has(requests[index]?.name as keyof Writes);
  const early = replies.filter(({ down }, index) => down !== undefined || soon(index));
  if (early.length > 0) answer({ kind: "replies", replies: early });
  unsynced.push(...replies.filter((reply) => !early.includes(reply)));
  sync();
  added += requests.length;
  clearTimeout(idle);
  if (added >= GROWN_WRITES) grown();
  else idle = setTimeout(grown, IDLE_MS);
}

function grown(): void {
  added = 0;
  answer({ kind: "grown" });
}

/** Syncs the log for all who wait, if no sync runs; its end begins the next one. */
function sync(): void {
  if (syncing || log === undefined) return;
  if (unsynced.length === 0) {
    synced?.();
    return;
  }
  const replies = unsynced;
  unsynced = [];
  syncing = true;
  fdatasync(log, (error) => {
    if (error) return fail(error);
    syncing = false;
    answer({ kind: "replies", replies });
    sync();
  });
}

function fail({ message }: Error): void {
  failed = true;
  clearTimeout(idle);
  waiting = [];
  answer({ kind: "failed", message });
  try {
    // Never ended: no command beside this server writes behind the hole.
    db?.run("BEGIN IMMEDIATE");
  } catch {
    // A disk that failed may refuse this as well.
  }
}

function close(): void {
  clearTimeout(idle);
  commitWaiting();
  synced = () => {
    synced = undefined;
    if (log !== undefined) closeSync(log);
    log = undefined;
    if (db) closeSqlite(db);
    db = undefined;
    answer({ kind: "closed" });
  };
  if (log === undefined) synced();
  else sync();
}

self.onmessage = ({ data }: MessageEvent<ToWriter>) => {
  if (failed) return;
  if (data.kind === "open") return open(data.path);
  if (data.kind === "close") return close();
  if (data.kind === "ping") return answer({ kind: "replies", replies: [{ id: data.id }] });
  // What arrives while a commit runs is waiting when it ends, and becomes the next group.
  if (waiting.push(data.request) === 1) setImmediate(commitWaiting);
};
