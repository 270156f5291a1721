/** The bound of requests that run at once: each holds memory and uses the disk. */
import type { Drills } from "../drill.ts";
import { Failure } from "../std/failure.ts";
import { Permits } from "../std/quota.ts";
import { RUNS } from "./errors.ts";
import type { RunKey } from "./store/records.ts";

/** Bounds in all, of one account, of one run. */
export interface PermitBounds {
  readonly max: number;
  readonly accountMax: number;
  readonly runMax: number;
}

export class RunPermits {
  private readonly accounts: Permits;
  private readonly runs: Permits;

  constructor({ max, accountMax, runMax }: PermitBounds) {
    this.accounts = new Permits(max, accountMax);
    this.runs = new Permits(max, runMax);
  }

  get size(): number {
    return this.runs.size;
  }

  /** The function that returns the permit; a text names what has too many requests. */
  take({ accountId, robot, run }: RunKey): (() => void) | string {
    const leaveAccount = this.accounts.take(accountId);
    if (typeof leaveAccount === "string") return leaveAccount === "owner" ? "runs of this account" : "runs";
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

interface Gate {
  readonly requests: RunPermits;
  readonly bodies: RunPermits;
  readonly drills: Drills;
}

/** Keeps the permit of a request beyond the end of its work; the result returns it. */
export type Keep = () => () => void;

/**
 * The result of the work, or a failure without a permit. Bodies have separate permits: they may take hours, and must not delay reads
 * and deletions.
 */
export async function gated<T>(
  { requests, bodies, drills }: Gate,
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
