/**
 * The writer thread: the only place that changes the database. An entry point of its own (a Worker), also in the
 * compiled executable. Messages in: `open`, writes, `ping`, `close`; messages out: see `FromWriter`.
 *
 * What waits becomes one commit; what must be durable is answered when a sync of the log that began after it has ended. One
 * sync runs at a time, beside the next commits, so that a hold, which need not be durable, never waits for the disk.
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
  | { readonly kind: "closed" };

declare const self: Worker;

/** Quiet time after which the log is copied into the database. */
const IDLE_MS = 1_000;

let db: Database | undefined;
/** The log beside the database: the same file as long as the database is open. */
let log: number | undefined;
let waiting: WriteRequest[] = [];
/** Committed, and not yet known to be on the disk. */
let unsynced: WriteReply[] = [];
let syncing = false;
/** Called when nothing is left to be synced. */
let synced: (() => void) | undefined;
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
  clearTimeout(idle);
  idle = setTimeout(checkpoint, IDLE_MS);
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
    syncing = false;
    answer({ kind: "replies", replies: error ? replies.map((reply) => unknown(reply, error)) : replies });
    sync();
  });
}

/** The disk did not say that it has it, and perhaps it has. */
function unknown({ id }: WriteReply, { message }: Error): WriteReply {
  return { id, down: `the log cannot be synced: ${message}`, unknown: true };
}

/** Copies the log into the database; a disk that refuses it now is asked again after the next commit, nothing is lost by that. */
function checkpoint(): void {
  try {
    db?.run("PRAGMA wal_checkpoint(PASSIVE)");
  } catch {
    // The log keeps growing meanwhile, and commits say what is wrong with the disk.
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
  if (data.kind === "open") return open(data.path);
  if (data.kind === "close") return close();
  if (data.kind === "ping") return answer({ kind: "replies", replies: [{ id: data.id }] });
  // What arrives while a commit runs is waiting when it ends, and becomes the next group.
  if (waiting.push(data.request) === 1) setImmediate(commitWaiting);
};
