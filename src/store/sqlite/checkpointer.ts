/**
 * The checkpoint thread: copies the log into the database beside the writer, so that no commit waits for it. An entry point of
 * its own (a Worker), also in the compiled executable. Messages in: `open`, `copy`, `close`; messages out: `FromCheckpointer`.
 */
import type { Database } from "bun:sqlite";
import { openCheckpointer, syncError } from "./connection.ts";

export type ToCheckpointer =
  | { readonly kind: "open"; readonly path: string }
  | { readonly kind: "copy" }
  | { readonly kind: "close" };

export type FromCheckpointer =
  /** For good: the log may have a hole. */
  { readonly kind: "failed"; readonly message: string } | { readonly kind: "closed" };

declare const self: Worker;

let db: Database | undefined;
let wanted = false;

function answer(message: FromCheckpointer): void {
  self.postMessage(message);
}

/** A disk that has no room now is asked again after later commits; nothing is lost by that, the log only grows meanwhile. */
function copy(): void {
  wanted = false;
  try {
    db?.run("PRAGMA wal_checkpoint(PASSIVE)");
  } catch (error) {
    const message = syncError(error);
    if (message === undefined) return;
    // A second try would succeed, and copy what the disk does not have.
    db = undefined;
    answer({ kind: "failed", message });
  }
}

self.onmessage = ({ data }: MessageEvent<ToCheckpointer>) => {
  if (data.kind === "open") {
    db = openCheckpointer(data.path);
  } else if (data.kind === "close") {
    db?.close();
    db = undefined;
    answer({ kind: "closed" });
  } else if (!wanted) {
    // What is asked for while a copy runs becomes one.
    wanted = true;
    setImmediate(copy);
  }
};
