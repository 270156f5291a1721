/** A write that must not be forgotten when the store is down for a while: it is tried again as long as the process lives. */
import { sleep } from "../std/clock.ts";
import { StoreDown } from "../store/store.ts";
import type { LlmDeps } from "./deps.ts";

/** Between two tries; the store itself has tried for longer than a second. */
const PAUSE_MS = 500;

export interface Persisted<R> {
  /** What the first try said. */
  readonly first: Promise<R | StoreDown>;
  /** What it ended in; a `StoreDown` only when the process was told to end. */
  readonly last: Promise<R | StoreDown>;
}

export function persist<R>(
  { clock, log, lifecycle }: Pick<LlmDeps, "clock" | "log" | "lifecycle">,
  id: string,
  write: () => Promise<R | StoreDown>,
): Persisted<R> {
  const first = write();
  const again = async () => {
    let outcome = await first;
    while (outcome instanceof StoreDown && !lifecycle.over.aborted) {
      log.error("response not recorded yet", { response: id, reason: outcome.reason });
      await sleep(clock, PAUSE_MS);
      outcome = await write();
    }
    return outcome;
  };
  const last = again();
  // Who awaits only the first try hears of its error there.
  last.catch(() => {});
  return { first, last };
}

/** Nobody knows whether the store has done it. */
export interface Unconfirmed {
  readonly reason: string;
}

/** As an outcome of its own: what may have been done is not a failure yet. */
export function unconfirmed<R>(outcome: R | StoreDown): R | StoreDown | Unconfirmed {
  return outcome instanceof StoreDown && outcome.outcomeUnknown ? { reason: outcome.reason } : outcome;
}
