/** How a client waits: a pause that a signal ends, and a request that ends when nothing is heard. */
import type { Clock } from "../std/clock.ts";

/** Resolves after `ms`, or at once when `signal` aborts. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) return Promise.resolve();
  const cancel = clock.after(ms, resolve);
  const left = () => resolve();
  signal.addEventListener("abort", left, { once: true });
  return promise.finally(() => {
    cancel();
    signal.removeEventListener("abort", left);
  });
}

/** Aborts when nothing has been heard for `ms`. */
export class Silence {
  private readonly controller = new AbortController();
  private cancel: () => void;

  constructor(
    private readonly clock: Clock,
    private readonly ms: number,
  ) {
    this.cancel = this.begin();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  heard(): void {
    this.cancel();
    this.cancel = this.begin();
  }

  stop(): void {
    this.cancel();
  }

  private begin(): () => void {
    return this.clock.after(this.ms, () => this.controller.abort(new DOMException("silence", "TimeoutError")));
  }
}
