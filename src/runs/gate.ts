/** The bound of requests that run at once: each holds memory and a place at the disk. */
import { Failure } from "../error/core.ts";
import { RUNS } from "../error/runs.ts";
import type { RunKey } from "../store/runs/records.ts";
import type { RunDeps } from "./deps.ts";

/** Keeps the place of a request beyond the end of its work; what comes back gives it back. */
export type Keep = () => () => void;

/** The work, unless too much of it runs already on this run, of the account, or in all. */
export async function gated<T>(
  { places, accountPlaces, drills }: Pick<RunDeps, "places" | "accountPlaces" | "drills">,
  { accountId, robot, run }: RunKey,
  work: (keep: Keep) => Promise<T>,
): Promise<T | Failure> {
  if (drills.strikes("storage_unavailable")) {
    const message = "the storage of runs cannot be reached (a drill); retry with backoff";
    return new Failure(RUNS.storage_unavailable, message, { retryAfterSeconds: 2 });
  }
  const leaveRun = drills.strikes("storage_busy") ? "account" : places.take(`${accountId}\n${robot}\n${run}`);
  if (typeof leaveRun !== "function") return busy(leaveRun === "account" ? "this run" : "runs");
  const leaveAccount = accountPlaces.take(accountId);
  if (typeof leaveAccount !== "function") {
    leaveRun();
    return busy("runs of this account");
  }
  const leave = () => {
    leaveAccount();
    leaveRun();
  };
  let kept = false;
  try {
    return await work(() => {
      kept = true;
      return leave;
    });
  } finally {
    if (!kept) leave();
  }
}

function busy(what: string): Failure {
  const message = `too many requests read or write ${what} at once; send fewer in parallel, and retry with backoff`;
  return new Failure(RUNS.storage_busy, message, { retryAfterSeconds: 1 });
}
