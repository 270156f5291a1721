/**
 * Seen time: the time that the service has seen pass. It begins at the wall time of the service's first start and moves on with the
 * monotonic clock while a process serves. The store keeps it (store/base.ts), and it never goes back. What the wall clock does in
 * between, and for how long nothing served, moves it not at all.
 *
 * Every span, such as that of a record that is kept, a hold, a sign-in or a throttle, begins and ends in seen time. It is
 * written as the Unix seconds that a clock would show that was right at the first start and that stood still between processes.
 * What is said to people and programs, and what follows the calendar (days, months), is wall time.
 */
import type { Clock } from "./clock.ts";

export interface SeenClock extends Clock {
  /** Milliseconds of seen time. */
  seenMs(): number;
}

/** Whole seconds of seen time. */
export function seenSeconds(clock: Pick<SeenClock, "seenMs">): number {
  return Math.floor(clock.seenMs() / 1000);
}

/** The Unix seconds that the wall clock shows, if it goes on as now, at `seconds` of seen time. */
export function shownSeconds(clock: Pick<SeenClock, "seenMs" | "unixMs">, seconds: number): number {
  return seconds + Math.round((clock.unixMs() - clock.seenMs()) / 1000);
}

/** The clock of a service: a clock, and the seen time of its store. */
export class ServiceClock implements SeenClock {
  private beganMs: number;
  private beganAtMs: number;

  /** The service counts as one that starts for the first time until `begin`. */
  constructor(private readonly clock: Clock) {
    this.beganMs = clock.unixMs();
    this.beganAtMs = clock.monotonicMs();
  }

  /** Called once, before the first request: this process goes on from the time that the store has. */
  begin(seconds: number): void {
    this.beganMs = seconds * 1000;
    this.beganAtMs = this.clock.monotonicMs();
  }

  /** Another process has seen more: side by side they see the same time pass, so this one takes that on. */
  reach(seconds: number): void {
    if (seconds * 1000 > this.seenMs()) this.begin(seconds);
  }

  seenMs(): number {
    return this.beganMs + (this.clock.monotonicMs() - this.beganAtMs);
  }

  unixMs(): number {
    return this.clock.unixMs();
  }

  monotonicMs(): number {
    return this.clock.monotonicMs();
  }

  after(ms: number, due: () => void): () => void {
    return this.clock.after(ms, due);
  }

  every(ms: number, due: () => void): () => void {
    return this.clock.every(ms, due);
  }
}
