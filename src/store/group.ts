/**
 * Group commit: all writes that wait become one transaction, so that fifty of them cost about as much as one.
 * Spoken between the store (sqlite.ts) and its writer thread (writer.ts).
 */
import type { Database } from "bun:sqlite";
import type { Writes } from "./store.ts";

/** One write on its way to the writer thread. */
export interface WriteRequest {
  readonly id: number;
  readonly name: keyof Writes;
  readonly argument: unknown;
}

/** Its outcome: `result`, or `down` with the reason why nothing of its group was kept. */
export interface WriteReply {
  readonly id: number;
  readonly result?: unknown;
  readonly down?: string;
}

/** Runs `requests` in order in one transaction; on any error none of them happened. */
export function commitGroup(db: Database, writes: Writes, requests: readonly WriteRequest[]): WriteReply[] {
  const replies: WriteReply[] = [];
  const run = db.transaction(() => {
    for (const request of requests) {
      // The argument was typed where the request was made (sqlite.ts); it crossed a thread since.
      const write = writes[request.name] as (argument: unknown) => unknown;
      replies.push({ id: request.id, result: write(request.argument) });
    }
  });
  try {
    run.immediate();
    return replies;
  } catch (error) {
    return requests.map(({ id }) => ({ id, down: (error as Error).message }));
  }
}
