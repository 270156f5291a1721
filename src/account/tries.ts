/**
 * How often each network was refused lately, in this process' memory: above its share the next try is refused before anything is
 * looked up. A try that turns out right is given back.
 */
import type { Clock } from "../std/clock.ts";

/** Networks whose tries are counted at once. */
const NETWORKS_MAX = 10_000;

interface Window {
  tries: number;
  /** Monotonic. */
  readonly endsMs: number;
}

export class Tries {
  private readonly windows = new Map<string, Window>();

  /** `max` tries of one network in `seconds`, by monotonic time: no wall clock that jumps lifts or freezes it. */
  constructor(
    private readonly clock: Pick<Clock, "monotonicMs">,
    private readonly max: number,
    private readonly seconds: number,
  ) {}

  /** Counts a try; the seconds to wait if it is one too many. */
  take(network: string): number | undefined {
    const now = this.clock.monotonicMs();
    let window = this.windows.get(network);
    if (window === undefined || now >= window.endsMs) {
      window = { tries: 0, endsMs: now + 1_000 * this.seconds };
      this.remember(network, window);
    }
    if (window.tries >= this.max) return Math.max(1, Math.ceil((window.endsMs - now) / 1_000));
    window.tries += 1;
    return undefined;
  }

  /** The try was right: it does not count. */
  giveBack(network: string): void {
    const window = this.windows.get(network);
    if (window !== undefined && window.tries > 0) window.tries -= 1;
  }

  get size(): number {
    return this.windows.size;
  }

  private remember(network: string, window: Window): void {
    // Begun anew it is the youngest; the oldest one makes room, and begins anew as well when it comes again.
    this.windows.delete(network);
    if (this.windows.size >= NETWORKS_MAX) {
      const [oldest] = this.windows.keys();
      if (oldest !== undefined) this.windows.delete(oldest);
    }
    this.windows.set(network, window);
  }
}
