/** Who waits for the end of a response. */
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";

/** Waits for the end of a response. A response of another node is looked for in the store. */
export class Watchers {
  private readonly waiting = new Map<string, Set<() => void>>();

  /** `over` ends all waits. */
  constructor(
    private readonly clock: Clock,
    over: AbortSignal,
  ) {
    over.addEventListener("abort", () => {
      for (const id of [...this.waiting.keys()]) this.tell(id);
    });
  }

  /** Resolves when the response may have ended: at a notice of this process, or after a pause, which is longer for its own responses. */
  moved(id: string, runs: "here" | "elsewhere" = "elsewhere"): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const those = this.waiting.get(id) ?? new Set();
    this.waiting.set(id, those);
    const wake = () => {
      disarm();
      those.delete(wake);
      if (those.size === 0) this.waiting.delete(id);
      resolve();
    };
    const disarm = this.clock.after(runs === "here" ? LIMITS.llmPollOwnMs : LIMITS.llmPollMs, wake);
    those.add(wake);
    return promise;
  }

  /** This process has ended the response, or made it something else. */
  tell(id: string): void {
    for (const wake of [...(this.waiting.get(id) ?? [])]) wake();
  }
}
