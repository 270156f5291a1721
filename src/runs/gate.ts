/** What run storage works with, and the bounds of its concurrent requests: each of them holds memory and uses the disk. */
import type { Drills } from "../drill.ts";
import { Failure } from "../std/failure.ts";
import type { Log } from "../std/log.ts";
import { Permits } from "../std/quota.ts";
import type { SeenClock } from "../std/seen-clock.ts";
import { type Blobs, BlobsDown } from "./blob/blobs.ts";
import { RUNS, unavailable } from "./errors.ts";
import type { Meter } from "./meter.ts";
import type { Ownership } from "./ownership.ts";
import type { RunBounds, RunKey } from "./store/records.ts";
import type { RunStore } from "./store/runs.ts";

export interface RunDeps {
  readonly clock: SeenClock;
  readonly log: Log;
  readonly drills: Drills;
  readonly store: RunStore;
  readonly blobs: Blobs;
  readonly ownership: Ownership;
  /** The id of this process. */
  readonly owner: string;
  readonly bounds: RunBounds;
  /** The permits of requests without the bytes of a file. */
  readonly requests: RunPermits;
  /** The permits of requests with the bytes of a file or a part. */
  readonly bodies: RunPermits;
  /** The permits of answers with the bytes of a file. */
  readonly downloads: RunPermits;
  readonly meter: Meter;
  /** The ids of files that arrive here and of joins that run here. Only their own requests may end them. */
  readonly live: Set<string>;
}

/** The numbers of requests at once: of the service, of one account, of one run. */
interface PermitBounds {
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

/** The key of a request that names no run. */
export function ofAccount(accountId: string): RunKey {
  return { accountId, robot: "", run: "" };
}

/** The permits that a request takes. */
export type Kind = "requests" | "bodies" | "downloads";

/** Keeps the permit of a request beyond the end of its work; the result returns it. */
export type Keep = () => () => void;

/**
 * The result of the work, or a failure without a permit. Bodies and downloads have separate permits: they may take hours, and must
 * not delay requests that only the database answers.
 */
export async function gated<T>(
  { drills, ownership, ...permits }: Pick<RunDeps, "drills" | "ownership" | Kind>,
  key: RunKey,
  work: (keep: Keep) => Promise<T>,
  kind: Kind = "requests",
): Promise<T | Failure> {
  if (drills.strikes("storage_unavailable")) {
    const message = "the storage of runs cannot be reached (a drill); retry with backoff";
    return new Failure(RUNS.storage_unavailable, message, { retryAfterSeconds: 2 });
  }
  if (ownership.missing !== undefined) return unavailable(new BlobsDown(ownership.missing));
  const leave = drills.strikes("storage_busy") ? "this run" : permits[kind].take(key);
  if (typeof leave === "string") {
    const message = `too many requests read or write ${leave} at once; send fewer in parallel, and retry with backoff`;
    return new Failure(RUNS.storage_busy, message, { retryAfterSeconds: 1 });
  }
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
