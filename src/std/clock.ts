/** Wall time, monotonic time and timers, so that tests can replace all three. */

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  unixMs(): number;
  /** Milliseconds since some fixed moment, never going back; microsecond resolution. */
  monotonicMs(): number;
  /** Calls `due` once after `ms`; the returned function cancels it. */
  after(ms: number, due: () => void): () => void;
  /** Calls `due` every `ms` until the returned function is called. Does not keep the process alive. */
  every(ms: number, due: () => void): () => void;
}

/** Resolves after `ms`. */
export function sleep(clock: Pick<Clock, "after">, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/** Whole seconds since the Unix epoch. */
export function unixSeconds(clock: Clock): number {
  return Math.floor(clock.unixMs() / 1000);
}

export const systemClock: Clock = {
  unixMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(ms, due) {
    const timer = setTimeout(due, ms);
    return () => clearTimeout(timer);
  },
  every(ms, due) {
    const timer = setInterval(due, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};
