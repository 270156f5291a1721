/**
 * Group commit: all writes that wait become one transaction, so that fifty of them cost about as much as one.
 * Spoken between the store (sqlite.ts) and its writer thread (writer.ts).
 */
import type { Database } from "bun:sqlite";
import { onSqlite } from "./dialect.ts";
import { WRITES } from "./operations.ts";
import { drive, type Steps } from "./steps.ts";
import type { Writes } from "./store.ts";

/** One write on its way to the writer thread. */
export interface WriteRequest {
  readonly id: number;
  readonly name: keyof Writes;
  readonly argument: unknown;
}

/** Its outcome: `result`, or `down` with the reason why nothing of it was kept. */
export interface WriteReply {
  readonly id: number;
  readonly result?: unknown;
  readonly down?: string;
  /** It may have been done all the same. */
  readonly unknown?: boolean;
}

/**
 * Runs `requests` in order in one transaction, which is durable once the log is synced (writer.ts). On any error none of them
 * happened; then each is tried alone, so that one that cannot be done takes no other with it. A lock of another process, for
 * which SQLite has waited, is not the fault of one: each would only wait as long again.
 */
export function commitGroup(db: Database, requests: readonly WriteRequest[]): WriteReply[] {
  const replies: WriteReply[] = [];
  const execute = onSqlite(db);
  const run = db.transaction(() => {
    for (const { id, name, argument } of requests) {
      // The argument was typed where the request was made (sqlite.ts); it crossed a thread since.
      const steps = WRITES[name] as (argument: unknown) => Steps<unknown>;
      replies.push({ id, result: drive(steps(argument), execute) });
    }
  });
  try {
    run.immediate();
    return replies;
  } catch (error) {
    const locked = (error as { code?: string }).code?.startsWith("SQLITE_BUSY") === true;
    if (requests.length > 1 && !locked) return requests.flatMap((request) => commitGroup(db, [request]));
    return requests.map(({ id }) => ({ id, down: (error as Error).message }));
  }
}
