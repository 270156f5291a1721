/** How much of the engine one account may hold at once, so that others always find frame and run slots free. */
import { Failure } from "../error.ts";
import { LIMITS } from "../limits.ts";

export class Shares {
  /** Runs of each account: the engine's run slots are for all models. */
  private readonly runs = new Map<string, number>();
  /** Frames of each account and model: every model has frame slots of its own. */
  private readonly frames = new Map<string, number>();

  /** Takes one run with `frames` frames of a model; what comes back gives it back, once or more often. */
  take(accountId: string, model: string, frames: number): (() => void) | Failure {
    const key = `${accountId}\n${model}`;
    const [runs, held] = [this.runs.get(accountId) ?? 0, this.frames.get(key) ?? 0];
    if (held + frames > LIMITS.accountFramesMax || runs >= LIMITS.accountChunksMax) {
      return new Failure(
        "engine_unavailable",
        `this account has ${runs} observations in progress, which is all that one may have; retry when some are answered`,
        { retryAfterSeconds: 1 },
      );
    }
    this.runs.set(accountId, runs + 1);
    this.frames.set(key, held + frames);
    let taken = true;
    return () => {
      if (!taken) return;
      taken = false;
      subtract(this.runs, accountId, 1);
      subtract(this.frames, key, frames);
    };
  }
}

function subtract(counts: Map<string, number>, key: string, count: number): void {
  const left = (counts.get(key) ?? 0) - count;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
