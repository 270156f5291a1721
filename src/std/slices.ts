/** Long work on the event loop in slices, so that other work has a turn in between. */
import { type Clock, systemClock } from "./clock.ts";

/** A robot's message waits this long for a slice, in milliseconds. */
const SLICE_MS = 2;

/** Does work and measures its time. */
export type Timer = <T>(work: () => T) => T;

/** `spent` gets the milliseconds of each piece of work. */
export function timerOf(clock: Pick<Clock, "monotonicMs">, spent: (ms: number) => void): Timer {
  return (work) => {
    const beginMs = clock.monotonicMs();
    const done = work();
    spent(clock.monotonicMs() - beginMs);
    return done;
  };
}

/** Work that yields wherever it may pause; from one yield to the next it should take microseconds. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Does the work to its end. `timed` does each slice of it. */
export async function inSlices<T>(steps: Steps<T>, timed: Timer = (slice) => slice()): Promise<T> {
  for (;;) {
    const end = timed(() => slice(steps));
    if (end) return end.value;
    await pause();
  }
}

function slice<T>(steps: Steps<T>): { readonly value: T } | undefined {
  const untilMs = systemClock.monotonicMs() + SLICE_MS;
  do {
    const { done, value } = steps.next();
    if (done === true) return { value };
  } while (systemClock.monotonicMs() < untilMs);
  return undefined;
}

/** Does the work without a pause. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Resolves when what has arrived meanwhile was handled. */
export function pause(): Promise<void> {
  return new Promise((soon) => setImmediate(soon));
}
