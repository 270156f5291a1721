/** The times of a flow, and what its graph makes of the one that it is asked at: one condition for all its rows, or one for each where a chunk continues some of them. */
import { present } from "../std/assert.ts";
import type { Facts } from "./architecture.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { linear, swish } from "./layers.ts";
import { geometric, SLIGHT } from "./weights.ts";

/** Wavelengths of the time embedding, in units of t: the shortest one of a flow-vla, and the longest of all. */
const PERIOD_MIN = 4e-3;
const PERIOD_MAX = 4;

/**
 * What depends on the time alone, for every time that a graph is asked at. The times are fixed, so that ONNX Runtime computes all of it
 * once, when it loads the graph, and a step reads a row.
 */
export interface Condition {
  /** f32 [times, time width]. */
  readonly table: Value;
  /** The row of the time that is asked at, i64 [], or of each token's, i64 [B, tokens]; undefined where there is one row. */
  readonly row: Value | undefined;
  /** Each token has its own. */
  readonly each?: true;
}

interface ConditionForm extends TimeForm {
  readonly width: number;
  readonly shortest?: number;
}

/** The condition of a flow that is asked at `time` f32 [1], which is one of the flow's times. */
export function flowCondition(graph: GraphBuilder, time: Value, wanted: ConditionForm): Condition {
  const { width, shortest = PERIOD_MIN } = wanted;
  return {
    table: timeTable(graph, askedTimes(wanted), width, shortest),
    row: flowStep(graph, time, wanted),
  };
}

/**
 * The condition of each token, of `time` f32 [B, rows]. Rows that are held, and the token of a state before them, have that of the flow's end:
 * there is no noise in them.
 */
export function rowCondition(graph: GraphBuilder, time: Value, hasState: boolean, wanted: ConditionForm): Condition {
  const { width, shortest = PERIOD_MIN, flow } = wanted;
  const asked = { ...wanted, end: true };
  const end = graph.ints([flow.steps]);
  const rows = flowStep(graph, graph.op("Unsqueeze", [time, graph.ints([2])]), asked, 2);
  const row = hasState && rows !== undefined ? graph.op("Pad", [rows, graph.ints([0, 1, 0, 0]), end]) : rows;
  return { table: timeTable(graph, askedTimes(asked), width, shortest), row, each: true };
}

/** `time_in` and `time_out` over sine and cosine of each t at geometric periods from `shortest` on; f32 [times, time width]. */
export function timeTable(graph: GraphBuilder, times: readonly number[], width: number, shortest: number): Value {
  const periods = geometric(PERIOD_MAX / shortest, width / 2);
  const frequencies = Float32Array.from(periods, (factor) => (2 * Math.PI) / (shortest * factor));
  const angles = graph.op("Mul", [
    graph.floats("time.times", [times.length, 1], Float32Array.from(times)),
    graph.floats("time.frequencies", [1, width / 2], frequencies),
  ]);
  const embedding = graph.op("Concat", [graph.op("Sin", [angles]), graph.op("Cos", [angles])], { axis: 1 });
  const dense = { from: width, to: width, bias: true, gain: 1.5 };
  const hidden = swish(graph, linear(graph, "time_in", embedding, dense));
  return swish(graph, linear(graph, "time_out", hidden, dense));
}

/**
 * The condition as one vector [width] per part, or [B, tokens, width] with one for each token, by `adaptive.weight` [time width, parts ·
 * width] and bias; pi0.5's `1 + scale` is in it.
 */
export function modulation<Parts extends readonly number[]>(
  graph: GraphBuilder,
  condition: Condition,
  size: { readonly width: number; readonly time_width: number },
  parts: Parts,
): { [Part in keyof Parts]: Value } {
  const width = parts.length * size.width;
  return graph.within("adaptive", () => {
    // In f32, which ONNX Runtime folds on any machine.
    const weight = graph.weight("weight", [size.time_width, width], { fanIn: size.time_width, gain: 0.5 }, "f32");
    const bias = graph.weight("bias", [width], { ...SLIGHT, offsets: parts }, "f32");
    const table = graph.inner(graph.op("Add", [graph.op("MatMul", [condition.table, weight]), bias]));
    const { row, each } = condition;
    const dense = row === undefined ? graph.reshape(table, [width]) : graph.op("Gather", [table, row], { axis: 0 });
    const sizes = parts.map(() => size.width);
    return graph.split(dense, each ? 2 : 0, sizes) as { [Part in keyof Parts]: Value };
  });
}

/** Times 0 to `steps`: the listed ones, or equal steps, each shifted (manifest-facts.ts), as the engine has them (native/src/bundle/manifest/flow.rs). */
function flowTimes({ t_start, t_end, steps, shift, times }: Facts["flow"]): readonly number[] {
  if (times !== undefined) return times;
  return Array.from({ length: steps + 1 }, (_, index) => {
    const t = t_start + (index * (t_end - t_start)) / steps;
    return (shift * t) / (1 + (shift - 1) * t);
  });
}

/** How a graph is told the time. */
interface TimeForm {
  readonly flow: Facts["flow"];
  /** The number of buckets for the time. */
  readonly buckets?: number | undefined;
  /** Rows that a chunk continues have the time of the flow's end. */
  readonly end?: boolean;
}

/** The times that a graph is asked at: one for each step, as it is told them, and behind them the end's. */
function askedTimes({ flow, buckets, end = false }: TimeForm): number[] {
  const times = flowTimes(flow).slice(0, end ? undefined : -1);
  return buckets === undefined ? times : times.map((t) => Math.floor(t * buckets) / buckets);
}

/**
 * The index of the time nearest to `time`, however the caller has rounded it: i64 [] of f32 [1], or i64 [B, rows] of f32 [B, rows, 1];
 * undefined where there is one time.
 */
function flowStep(graph: GraphBuilder, time: Value, asked: TimeForm, axis = 0): Value | undefined {
  const times = askedTimes(asked);
  const bounds = times.slice(0, -1).map((t, step) => (t + present(times[step + 1], "a time")) / 2);
  if (bounds.length === 0) return undefined;
  const between = graph.floats("time.bounds", [bounds.length], Float32Array.from(bounds));
  const passed = graph.op(asked.flow.t_end < asked.flow.t_start ? "Less" : "Greater", [time, between]);
  const count = graph.op("ReduceSum", [graph.cast(passed, "f32"), graph.ints([axis])], { keepdims: 0 });
  return graph.cast(count, "i64");
}
