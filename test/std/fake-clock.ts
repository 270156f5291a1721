/** A clock that moves only when a test says so; timers fire, in order of their time, while it moves. */
import type { SeenClock } from "../../src/std/seen-clock.ts";

interface Timer {
  dueMs: number;
  readonly everyMs: number | undefined;
  readonly due: () => void;
}

export class FakeClock implements SeenClock {
  private nowMs = 0;
  private jumpedMs = 0;
  private readonly timers = new Set<Timer>();

  /** Unix milliseconds at the start. */
  constructor(private readonly startMs = 1_700_000_000_000) {}

  unixMs(): number {
    return this.startMs + this.nowMs + this.jumpedMs;
  }

  /** Seen time on a service that starts for the first time and whose clock never jumped. */
  seenMs(): number {
    return this.startMs + this.nowMs;
  }

  monotonicMs(): number {
    return this.nowMs;
  }

  after(ms: number, due: () => void): () => void {
    return this.arm({ dueMs: this.nowMs + ms, everyMs: undefined, due });
  }

  every(ms: number, due: () => void): () => void {
    return this.arm({ dueMs: this.nowMs + ms, everyMs: ms, due });
  }

  /** Timers that are armed now. */
  get armed(): number {
    return this.timers.size;
  }

  /** Moves the wall clock alone, forward or back: no time passes. */
  jump(ms: number): void {
    this.jumpedMs += ms;
  }

  advance(ms: number): void {
    const end = this.nowMs + ms;
    for (;;) {
      const next = [...this.timers].sort((a, b) => a.dueMs - b.dueMs)[0];
      if (!next || next.dueMs > end) break;
      this.nowMs = next.dueMs;
      if (next.everyMs === undefined) this.timers.delete(next);
      else next.dueMs += next.everyMs;
      next.due();
    }
    this.nowMs = end;
  }

  /** Disarms all timers, as the end of the process would. */
  forget(): void {
    this.timers.clear();
  }

  private arm(timer: Timer): () => void {
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }
}
