/** What a push and a pull have in common: the number of requests at once, the progress, and the end by Ctrl-C. */
import { NoAnswer } from "../../client/http.ts";
import type { Watcher } from "../../client/runs/watcher.ts";
import { Problem } from "../../std/problem.ts";
import type { CommandLine } from "../frame/command.ts";
import { progressOnTerminal } from "./progress.ts";

/** Requests at once. A run may have 16 unfinished uploads. */
export const PARALLEL = 4;

/** A shell shows this for a command that Ctrl-C ended. */
const LEFT = 130;

const ON = "the same command goes on from there";

/** Runs a transfer, shown on standard error. A Ctrl-C stops it cleanly. */
export async function transferred<T>(
  given: CommandLine,
  transfer: (watcher: Watcher, signal: AbortSignal) => Promise<T | Problem>,
): Promise<T | Problem> {
  const left = new AbortController();
  // Once: a second Ctrl-C ends the command at once.
  process.once("SIGINT", () => left.abort());
  const progress = progressOnTerminal(!given.on("json"));
  try {
    const outcome = await transfer(progress, left.signal);
    // What had ended before the signal came has ended.
    if (!(outcome instanceof Problem)) return outcome;
    if (left.signal.aborted) return new Problem(`left; what was done is kept: ${ON}`, LEFT);
    const cut = outcome instanceof NoAnswer && !outcome.nobodyListens;
    return cut ? new Problem(`${outcome.message}; ${ON}`, outcome.exit) : outcome;
  } finally {
    progress.end();
  }
}
