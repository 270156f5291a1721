/**
 * The writer thread: the only place that changes the database. An entry point of its own (a Worker), also in the
 * compiled executable. Messages in: `open`, writes, `ping`, `close`; messages out: see `FromWriter`.
 */
import type { Database } from "bun:sqlite";
import { openWriter } from "./connection.ts";
import { closeSqlite } from "./dialect.ts";
import { commitGroup, type WriteReply, type WriteRequest } from "./group.ts";
import { migrate } from "./migrations.ts";

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
let waiting: WriteRequest[] = [];
let idle: ReturnType<typeof setTimeout> | undefined;

function answer(message: FromWriter): void {
  self.postMessage(message);
}

function open(path: string): void {
  try {
    db = openWriter(path);
    const problem = migrate(db);
    answer(problem === undefined ? { kind: "opened" } : { kind: "opened", problem });
  } catch (error) {
    answer({ kind: "opened", problem: (error as Error).message });
  }
}

function commitWaiting(): void {
  const requests = waiting;
  waiting = [];
  if (!db || requests.length === 0) return;
  answer({ kind: "replies", replies: commitGroup(db, requests) });
  clearTimeout(idle);
  idle = setTimeout(checkpoint, IDLE_MS);
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
  if (db) closeSqlite(db);
  db = undefined;
  answer({ kind: "closed" });
}

self.onmessage = ({ data }: MessageEvent<ToWriter>) => {
  if (data.kind === "open") return open(data.path);
  if (data.kind === "close") return close();
  if (data.kind === "ping") return answer({ kind: "replies", replies: [{ id: data.id }] });
  // What arrives while a commit runs is waiting when it ends, and becomes the next group.
  if (waiting.push(data.request) === 1) setImmediate(commitWaiting);
};
