/** Deletion: the record first, in one step; the sweep removes the bytes (sweep.ts). */
import type { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { RunDeps } from "./deps.ts";
import { completed, fileNotFound, runGone, unavailable } from "./failures.ts";
import type { FileKey, RunKey } from "./store/records.ts";

type Deps = Pick<RunDeps, "store" | "clock">;

export async function removeFile({ store, clock }: Deps, key: FileKey): Promise<undefined | Failure> {
  const outcome = await store.fileDelete({ ...key, cause: makeId("del_", clock), at: seenSeconds(clock) });
  if (outcome instanceof StoreDown) return unavailable(outcome);
  if (outcome === "run_not_found") return runGone();
  if (outcome === "run_completed") return completed();
  return outcome === "file_not_found" ? fileNotFound() : undefined;
}

/** In any state, with everything that is or comes under it. */
export async function removeRun({ store, clock }: Deps, key: RunKey): Promise<undefined | Failure> {
  const outcome = await store.runDelete({ ...key, cause: makeId("del_", clock), at: seenSeconds(clock) });
  if (outcome instanceof StoreDown) return unavailable(outcome);
  return outcome === "run_not_found" ? runGone() : undefined;
}
