/** What a push or a pull tells its display. All of it is for people: nothing depends on it. */
import type { Problem } from "../../std/problem.ts";

export interface Watcher {
  /** What lies ahead; `skipped` are hidden files, which are no part of a run. */
  begun(all: { readonly files: number; readonly bytes: number; readonly skipped: readonly string[] }): void;
  /** Bytes that need not move, because they are there. */
  there(bytes: number): void;
  /** Bytes that moved; a negative number takes back those of an attempt that failed. */
  moved(bytes: number): void;
  fileDone(): void;
  /** Something stands until it is tried again. */
  waiting(why: Problem, ms: number): void;
}

/** Counted in bytes and files. */
export interface Amount {
  files: number;
  bytes: number;
}
