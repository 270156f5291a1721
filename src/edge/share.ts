/** How much of the engine one account may hold at once, so that others always find frame and run slots free. */
import { Failure } from "../error.ts";
import { LIMITS } from "../limits.ts";

interface Held {
  frames: number;
  runs: number;
}

export class Shares {
  private readonly held = new Map<string, Held>();

  /** Takes one run with `frames` frames of a model; what comes back gives it back, once or more often. */
  take(accountId: string, model: string, frames: number): (() => void) | Failure {
    const key = `${accountId}\n${model}`;
    const held = this.held.get(key) ?? { frames: 0, runs: 0 };
    if (held.frames + frames > LIMITS.accountFramesMax || held.runs >= LIMITS.accountChunksMax) {
      return new Failure(
        "engine_unavailable",
        `this account has ${held.runs} observations of this model in progress, which is all that one may have; retry when some are answered`,
        { retryAfterSeconds: 1 },
      );
    }
    this.held.set(key, { frames: held.frames + frames, runs: held.runs + 1 });
    let taken = true;
    return () => {
      if (taken) this.give(key, frames);
      taken = false;
    };
  }

  private give(key: string, frames: number): void {
    const held = this.held.get(key);
    if (!held) return;
    if (held.runs === 1) this.held.delete(key);
    else this.held.set(key, { frames: held.frames - frames, runs: held.runs - 1 });
  }
}
