/** The time limits of one call to a provider: first byte, silence, the whole. */
import type { Clock } from "../../std/clock.ts";

export class TimeLimits {
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
    this.disarm();
    this.disarm = this.clock.after(ms, () => this.expired(phase));
  }

  stop(): void {
    this.disarm();
    this.disarmTotal();
  }
}
