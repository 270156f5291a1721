/** The times of a flow, and which of them a graph is asked at. */
import { present } from "../std/assert.ts";
import type { Facts } from "./architecture.ts";
import type { GraphBuilder, Value } from "./graph.ts";

/** Times 0 to `steps`: equal steps, each shifted (manifest-facts.ts), as the engine computes them (native/src/manifest.rs). */
export function flowTimes({ t_start, t_end, steps, shift }: Facts["flow"]): number[] {
  return Array.from({ length: steps + 1 }, (_, index) => {
    const t = t_start + (index * (t_end - t_start)) / steps;
    return (shift * t) / (1 + (shift - 1) * t);
  });
}

/** The step whose time is the nearest to `time` f32 [1], however the caller has rounded it: i64 []; undefined with one step. */
export function flowStep(graph: GraphBuilder, time: Value, flow: Facts["flow"]): Value | undefined {
  const times = flowTimes(flow);
  const bounds = times.slice(0, -2).map((t, step) => (t + present(times[step + 1], "a time")) / 2);
  if (bounds.length === 0) return undefined;
  const between = graph.floats("time.bounds", [bounds.length], Float32Array.from(bounds));
  const passed = graph.op(flow.t_end < flow.t_start ? "Less" : "Greater", [time, between]);
  const count = graph.op("ReduceSum", [graph.cast(passed, "f32"), graph.ints([0])], { keepdims: 0 });
  return graph.cast(count, "i64");
}
