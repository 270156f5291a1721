/** The times of a flow. */
import type { Facts } from "./architecture.ts";

/** Times 0 to `steps`: the listed ones, or equal steps, each shifted (manifest-facts.ts), as the engine has them (native/src/bundle/manifest/flow.rs). */
export function flowTimes({ t_start, t_end, steps, shift, times }: Facts["flow"]): readonly number[] {
  if (times !== undefined) return times;
  return Array.from({ length: steps + 1 }, (_, index) => {
    const t = t_start + (index * (t_end - t_start)) / steps;
    return (shift * t) / (1 + (shift - 1) * t);
  });
}
