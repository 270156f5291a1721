/** The time limits of one call to a provider: first byte, silence, the whole. One timer, which is moved when it fires. */
import type { Clock } from "../../std/clock.ts";

export class TimeLimits {
  private phase = "";
  private phaseMs = Number.POSITIVE_INFINITY;
  private sinceMs: number;
  private readonly overMs: number;
  private disarm: (() => void) | undefined;

  /** The limit of the whole counts from here on. */
  constructor(
    private readonly clock: Clock,
    totalMs: number,
    /** Called once, with the name of the limit that was passed. */
    private readonly expired: (limit: string) => void,
  ) {
    this.sinceMs = clock.monotonicMs();
    this.overMs = this.sinceMs + totalMs;
    this.arm();
  }

  /** From now on `ms` may pass until the next call of this. */
  enter(phase: string, ms: number): void {
    this.sinceMs = this.clock.monotonicMs();
    // The timer stays: when it fires, it sees that there is time left.
    if (this.phase === phase) return;
    this.phase = phase;
    this.phaseMs = ms;
    this.arm();
  }

  stop(): void {
    this.disarm?.();
    this.disarm = undefined;
  }

  private arm(): void {
    this.stop();
    const dueMs = Math.min(this.sinceMs + this.phaseMs, this.overMs);
    // A timer that fires a little early would otherwise be set again for nothing.
    this.disarm = this.clock.after(Math.max(1, Math.ceil(dueMs - this.clock.monotonicMs())), () => this.due());
  }

  private due(): void {
    const now = this.clock.monotonicMs();
    if (now >= this.overMs) this.expired("total_seconds");
    else if (now >= this.sinceMs + this.phaseMs) this.expired(this.phase);
    else this.arm();
  }
}
