/** The times of a flow, and which of them a graph is asked at. */
import { present } from "../std/assert.ts";
import type { Facts } from "./architecture.ts";
import type { GraphBuilder, Value } from "./graph.ts";

/** Times 0 to `steps`: equal steps, each shifted (manifest-facts.ts), as the engine computes them (native/src/bundle/manifest.rs). */
function flowTimes({ t_start, t_end, steps, shift }: Facts["flow"]): number[] {
  return Array.from({ length: steps + 1 }, (_, index) => {
    const t = t_start + (index * (t_end - t_start)) / steps;
    return (shift * t) / (1 + (shift - 1) * t);
  });
}

/** How a graph is told the time. */
export interface Asked {
  readonly flow: Facts["flow"];
  /** The time is told in so many buckets. */
  readonly buckets?: number | undefined;
  /** Rows that a chunk continues have the time of the flow's end. */
  readonly end?: boolean;
}

/** The times that a graph is asked at: one for each step, as it is told them, and behind them the end's. */
export function askedTimes({ flow, buckets, end = false }: Asked): number[] {
  const times = flowTimes(flow).slice(0, end ? undefined : -1);
  return buckets === undefined ? times : times.map((t) => Math.floor(t * buckets) / buckets);
}

/**
 * The index of the time nearest to `time`, however the caller has rounded it: i64 [] of f32 [1], or i64 [B, rows] of f32 [B, rows, 1];
 * undefined where there is one time.
 */
export function flowStep(graph: GraphBuilder, time: Value, asked: Asked, axis = 0): Value | undefined {
  const times = askedTimes(asked);
  const bounds = times.slice(0, -1).map((t, step) => (t + present(times[step + 1], "a time")) / 2);
  if (bounds.length === 0) return undefined;
  const between = graph.floats("time.bounds", [bounds.length], Float32Array.from(bounds));
  const passed = graph.op(asked.flow.t_end < asked.flow.t_start ? "Less" : "Greater", [time, between]);
  const count = graph.op("ReduceSum", [graph.cast(passed, "f32"), graph.ints([axis])], { keepdims: 0 });
  return graph.cast(count, "i64");
}
