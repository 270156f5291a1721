/** A write that outlives an outage of the store: it is tried again as long as the process lives. */
import { sleep } from "../std/clock.ts";
import { StoreDown } from "../store/store.ts";
import type { LlmDeps } from "./deps.ts";

/** Between two tries; the store itself has tried for longer than a second. */
const PAUSE_MS = 500;

export interface PersistentWrite<R> {
  /** The outcome of the first try. */
  readonly first: Promise<R | StoreDown>;
  /** The last outcome; a `StoreDown` only when the process ends. */
  readonly last: Promise<R | StoreDown>;
}

export function persist<R>(
  { clock, log, lifecycle }: Pick<LlmDeps, "clock" | "log" | "lifecycle">,
  id: string,
  write: () => Promise<R | StoreDown>,
): PersistentWrite<R> {
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
  // A caller that awaits only the first try gets its error there.
  last.catch(() => {});
  return { first, last };
}

/** It is not known whether the store has done the write. */
export interface UnknownOutcome {
  readonly reason: string;
}

/** Tells an unknown outcome from a failure, since the write may have been done. */
export function unconfirmed<R>(outcome: R | StoreDown): R | StoreDown | UnknownOutcome {
  return outcome instanceof StoreDown && outcome.outcomeUnknown ? { reason: outcome.reason } : outcome;
}
