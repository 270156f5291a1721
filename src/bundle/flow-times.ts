/** The times of a flow. */
import type { Facts } from "./architecture.ts";

/** Times 0 to `steps`: equal steps, each shifted (manifest-facts.ts), as the engine computes them (native/src/bundle/manifest.rs). */
export function flowTimes({ t_start, t_end, steps, shift }: Facts["flow"]): number[] {
  return Array.from({ length: steps + 1 }, (_, index) => {
    const t = t_start + (index * (t_end - t_start)) / steps;
    return (shift * t) / (1 + (shift - 1) * t);
  });
}
