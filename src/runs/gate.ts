/** The bound of requests that run at once: each holds memory and a place at the disk. */
import { Failure } from "../std/failure.ts";
import { Places } from "../std/places.ts";
import type { RunDeps } from "./deps.ts";
import { RUNS } from "./errors.ts";
import type { RunKey } from "./store/records.ts";

/** Places of one kind: in all, of one account, of one run. */
export interface PlaceBounds {
  readonly max: number;
  readonly accountMax: number;
  readonly runMax: number;
}

export class RunPlaces {
  private readonly accounts: Places;
  private readonly runs: Places;

  constructor({ max, accountMax, runMax }: PlaceBounds) {
    this.accounts = new Places(max, accountMax);
    this.runs = new Places(max, runMax);
  }

  get size(): number {
    return this.runs.size;
  }

  /** What comes back gives the place back, once. A text says of what there are too many. */
  take({ accountId, robot, run }: RunKey): (() => void) | string {
    const leaveAccount = this.accounts.take(accountId);
    if (typeof leaveAccount !== "function") return leaveAccount === "account" ? "runs of this account" : "runs";
    const leaveRun = this.runs.take(`${accountId}\n${robot}\n${run}`);
    if (typeof leaveRun === "function") {
      return () => {
        leaveRun();
        leaveAccount();
      };
    }
    leaveAccount();
    return "this run";
  }
}

/** Keeps the place of a request beyond the end of its work; what comes back gives it back. */
export type Keep = () => () => void;

/**
 * The work, unless too much of its kind runs already on this run, of the account, or in all. Bodies have places of their own: they may
 * take hours, and nobody who reads or deletes waits for them.
 */
export async function gated<T>(
  { requests, bodies, drills }: Pick<RunDeps, "requests" | "bodies" | "drills">,
  key: RunKey,
  work: (keep: Keep) => Promise<T>,
  kind: "request" | "body" = "request",
): Promise<T | Failure> {
  if (drills.strikes("storage_unavailable")) {
    const message = "the storage of runs cannot be reached (a drill); retry with backoff";
    return new Failure(RUNS.storage_unavailable, message, { retryAfterSeconds: 2 });
  }
  const leave = drills.strikes("storage_busy") ? "this run" : (kind === "body" ? bodies : requests).take(key);
  if (typeof leave === "string") return busy(leave);
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
