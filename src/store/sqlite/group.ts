/**
 * Group commit: all writes that wait become one transaction, so that fifty of them cost about as much as one.
 * These are the messages between the store (thread.ts) and its writer thread (writer.ts).
 */
import type { Database } from "bun:sqlite";
import type { NamedOperation } from "../domain.ts";
import { drive } from "../steps.ts";
import type { WriteCall } from "../store.ts";
import { onSqlite } from "./statements.ts";

export interface WriteRequest extends WriteCall {
  readonly id: number;
}

/** The outcome of a write: `result`, or `down` with the reason why nothing of it was kept. */
export interface WriteReply {
  readonly id: number;
  readonly result?: unknown;
  readonly down?: string;
  /** The write may have been done nevertheless. */
  readonly unknown?: boolean;
}

export type Writes = ReadonlyMap<string, NamedOperation>;

/**
 * Runs `requests` in order in one transaction, which is durable once the log is synced (writer.ts). On any error none of them
 * happened; then each is tried alone, so that one bad write does not fail the others. If another process holds the lock, all
 * fail together: SQLite has waited for it already, and each would wait as long again.
 */
export function commitGroup(db: Database, writes: Writes, requests: readonly WriteRequest[]): WriteReply[] {
  const replies: WriteReply[] = [];
  const execute = onSqlite(db);
  const run = db.transaction(() => {
    for (const request of requests) replies.push({ id: request.id, result: done(request, writes, execute) });
  });
  try {
    run.immediate();
    return replies;
  } catch (error) {
    const locked = (error as { code?: string }).code?.startsWith("SQLITE_BUSY") === true;
    if (requests.length > 1 && !locked) return requests.flatMap((request) => commitGroup(db, writes, [request]));
    return requests.map(({ id }) => ({ id, down: (error as Error).message }));
  }
}

/** Does the writes in one transaction that is rolled back, so that their statements are prepared; on an error not all of them. */
export function warmGroup(db: Database, writes: Writes, calls: readonly WriteCall[]): void {
  const execute = onSqlite(db);
  try {
    db.run("BEGIN IMMEDIATE");
    for (const call of calls) done(call, writes, execute);
  } catch {
    // The first real write prepares the rest, or fails.
  } finally {
    if (db.inTransaction) db.run("ROLLBACK");
  }
}

function done({ key, argument }: WriteCall, writes: Writes, execute: ReturnType<typeof onSqlite>): unknown {
  // The argument's type was checked with the request (domain.ts), before it crossed to this thread.
  const steps = writes.get(key)?.steps(argument as never);
  if (!steps) throw new Error(`the store has no operation ${key}`);
  return drive(steps, execute);
}
