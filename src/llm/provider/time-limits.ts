/** The time limits of one call to a provider: first byte, silence, the whole. */
import type { Clock } from "../../std/clock.ts";

export class TimeLimits {
  private phase = "";
  private sinceMs = 0;
  private disarm = () => {};
  private readonly disarmTotal: () => void;

  /** The limit of the whole counts from here on. */
  constructor(
    private readonly clock: Clock,
    totalMs: number,
    /** Called with the name of a limit that has passed. */
    private readonly expired: (limit: string) => void,
  ) {
    this.disarmTotal = clock.after(totalMs, () => expired("total_seconds"));
  }

  /** At most `ms` may pass until the next call of this. */
  enter(phase: string, ms: number): void {
    this.sinceMs = this.clock.monotonicMs();
    // The timer stays: when it fires, it sees that there is time left.
    if (this.phase === phase) return;
    this.phase = phase;
    this.arm(ms, ms);
  }

  stop(): void {
    this.disarm();
    this.disarmTotal();
  }

  private arm(ms: number, leftMs: number): void {
    this.disarm();
    // A timer that fires a little early would otherwise be set again for nothing.
    this.disarm = this.clock.after(Math.max(1, Math.ceil(leftMs)), () => {
      const left = this.sinceMs + ms - this.clock.monotonicMs();
      if (left > 0) this.arm(ms, left);
      else this.expired(this.phase);
    });
  }
}
