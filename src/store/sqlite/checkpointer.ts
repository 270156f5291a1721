/**
 * The checkpoint thread: copies the log into the database beside the writer, so that no commit waits for it. It is an entry
 * point, a Worker also in the compiled executable.
 */
import type { Database } from "bun:sqlite";
import { openCheckpointer, syncError } from "./connection.ts";

export type ToCheckpointer =
  | { readonly kind: "open"; readonly path: string }
  | { readonly kind: "copy" }
  | { readonly kind: "close" };

export type FromCheckpointer =
  /** The store stays down: the log may lack a part. */
  { readonly kind: "failed"; readonly message: string } | { readonly kind: "closed" };

declare const self: Worker;

let db: Database | undefined;
let wanted = false;

function answer(message: FromCheckpointer): void {
  self.postMessage(message);
}

/** Copies the log. An error such as a full disk loses nothing: later commits have it tried again, and the log grows meanwhile. */
function copy(): void {
  wanted = false;
  try {
    db?.run("PRAGMA wal_checkpoint(PASSIVE)");
  } catch (error) {
    const message = syncError(error);
    if (message === undefined) return;
    // Linux reports a failed sync once: a second try would succeed although the disk lacks a part.
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
    // Messages that arrive while a copy runs become one further copy.
    wanted = true;
    setImmediate(copy);
  }
};
