/** The times of a flow, and what its graph makes of the one that it is asked at: one condition for all its rows, or one for each where a chunk continues some of them. */
import { present } from "../std/assert.ts";
import { geometric } from "./geometric.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { linear, swish } from "./layers.ts";
import { SLIGHT } from "./weights.ts";

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
  /** The table is that of sines and cosines: `joinedTime` goes on from there. */
  readonly joined?: boolean;
}

/** The condition of a flow that is asked at `time` f32 [1], which is one of the flow's times. */
export function flowCondition(graph: GraphBuilder, time: Value, wanted: ConditionForm): Condition {
  return { table: conditionTable(graph, wanted), row: flowStep(graph, time, wanted) };
}

/**
 * The condition of each token, of `time` f32 [B, rows]. Rows that are held, and the token of a state before them, have that of the flow's end:
 * there is no noise in them.
 */
export function rowCondition(graph: GraphBuilder, time: Value, hasState: boolean, wanted: ConditionForm): Condition {
  const asked = { ...wanted, end: true };
  const end = graph.ints([wanted.times.length - 1]);
  const rows = flowStep(graph, graph.op("Unsqueeze", [time, graph.ints([2])]), asked, 2);
  const row = hasState && rows !== undefined ? graph.op("Pad", [rows, graph.ints([0, 1, 0, 0]), end]) : rows;
  return { table: conditionTable(graph, asked), row, each: true };
}

function conditionTable(graph: GraphBuilder, wanted: ConditionForm): Value {
  const { width, shortest = PERIOD_MIN, joined = false } = wanted;
  return (joined ? timeWaves : timeTable)(graph, askedTimes(wanted), width, shortest);
}

/**
 * Sine and cosine of each t at geometric periods from `shortest` on; f32 [times, time width]. A t is float32, as a graph is told it. Its
 * sines and cosines are computed in float64 and rounded once, as LeRobot and openpi do: with angles of up to 1571 rad a product in float32
 * is 9e-5 off.
 */
function timeWaves(graph: GraphBuilder, times: readonly number[], width: number, shortest: number): Value {
  const periods = geometric(PERIOD_MAX / shortest, width / 2).map((factor) => shortest * factor);
  const angles = times.map((t) => periods.map((period) => (2 * Math.PI * Math.fround(t)) / period));
  const values = angles.flatMap((row) => [...row.map(Math.sin), ...row.map(Math.cos)]);
  return graph.floats("time.table", [times.length, width], Float32Array.from(values));
}

/** `time_in` and `time_out` over `timeWaves`; f32 [times, time width]. */
export function timeTable(graph: GraphBuilder, times: readonly number[], width: number, shortest: number): Value {
  const embedding = timeWaves(graph, times, width, shortest);
  const dense = { from: width, to: width, bias: true, gain: 1.5 };
  const hidden = swish(graph, linear(graph, "time_in", embedding, dense));
  return swish(graph, linear(graph, "time_out", hidden, dense));
}

/**
 * Rows x f32 [B, rows, W] joined with their time: SiLU between `action_time_in`, of both side by side, and `action_time_out` (pi0). The
 * condition's table has W columns. What the time adds to the first product is a table as well.
 */
export function joinedTime(graph: GraphBuilder, condition: Condition, x: Value, width: number): Value {
  const hidden = graph.within("action_time_in", () => {
    const weight = graph.weight("weight", [2 * width, width], { fanIn: 2 * width, gain: 1.5 }, "f32");
    const bias = graph.weight("bias", [width], SLIGHT, "f32");
    const [ofRows, ofTime] = graph.split(weight, 0, [width, width]) as [Value, Value];
    const table = graph.op("Add", [graph.op("MatMul", [condition.table, ofTime]), bias]);
    return graph.op("Add", [graph.op("MatMul", [x, ofRows]), asked(graph, condition, table, width)]);
  });
  return linear(graph, "action_time_out", swish(graph, hidden), { from: width, to: width, bias: true, gain: 1.5 });
}

/** Rows of a table of the condition [times, `width`]: one [width], or [B, tokens, width] with one for each token. */
function asked(graph: GraphBuilder, { row }: Condition, table: Value, width: number): Value {
  return row === undefined ? graph.reshape(table, [width]) : graph.op("Gather", [table, row], { axis: 0 });
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
    const dense = asked(graph, condition, table, width);
    const sizes = parts.map(() => size.width);
    return graph.split(dense, condition.each ? 2 : 0, sizes) as { [Part in keyof Parts]: Value };
  });
}

/** How a graph is told the time. */
interface TimeForm {
  /** One for each step, and that of the end. */
  readonly times: readonly number[];
  /** The number of buckets for the time. */
  readonly buckets?: number | undefined;
  /** Rows that a chunk continues have the time of the flow's end. */
  readonly end?: boolean;
}

/** The times that a graph is asked at: one for each step, as it is told them, and behind them the end's. */
function askedTimes({ times, buckets, end = false }: TimeForm): number[] {
  const asked = times.slice(0, end ? undefined : -1);
  return buckets === undefined ? asked : asked.map((t) => Math.floor(t * buckets) / buckets);
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
  const passed = graph.op(isFalling(asked.times) ? "Less" : "Greater", [time, between]);
  const count = graph.op("ReduceSum", [graph.cast(passed, "f32"), graph.ints([axis])], { keepdims: 0 });
  return graph.cast(count, "i64");
}

function isFalling(times: readonly number[]): boolean {
  return present(times.at(-1), "the last time") < present(times[0], "the first time");
}
