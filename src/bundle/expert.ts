/** Flow expert of a flow-vla: noisy action rows, time and prefix cache to a velocity; adaptive RMSNorm by the time, as in pi0.5. */
import type { Architecture, Facts } from "./architecture.ts";
import { flowStep, flowTimes } from "./flow-times.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { headsOf, type KeyValue, queryKeyValue } from "./language.ts";
import { attend, blockLinear, gatedMlp, linear, maskScores, rmsScale, rotationAt, swish, tiedOut } from "./layers.ts";
import { geometric, SLIGHT } from "./weights.ts";

/** Wavelengths of the time embedding, in units of t: the shortest one of this family, and the longest of all. */
const PERIOD_MIN = 4e-3;
const PERIOD_MAX = 4;
/** Means of the biases of scale, shift and gate, for attention and MLP; and of the final norm's scale and shift. */
export const BLOCK_PARTS = [1, 0, 1, 1, 0, 1] as const;
export const FINAL_PARTS = [1, 0] as const;
/** Makes a state token as strong as the rows, although most of its values are padding. */
const STATE_GAIN = 1.5;

/**
 * What depends on the time alone, for every time that a graph is asked at. The times are fixed, so that ONNX Runtime computes all of it
 * once, when it loads the graph, and a step reads a row.
 */
export interface Condition {
  /** f32 [times, time width]. */
  readonly table: Value;
  /** The row of the time that is asked at, i64 []; undefined where there is one row. */
  readonly row: Value | undefined;
}

export interface Flow {
  /** f32 [B, rows, width]. */
  readonly latent: Value;
  /** f32 [1]. */
  readonly time: Value;
  /** f32 [B, width]: normalised state, one token before the rows. */
  readonly state: Value | undefined;
  /** bool [B, S], S at most `prefixMax`. */
  readonly prefixMask: Value;
  readonly prefixMax: number;
  /** Per layer, [B, K, S, D]. */
  readonly caches: readonly KeyValue[];
}

/** The velocity f32 [B, rows, action width]. */
export function expert(graph: GraphBuilder, flow: Flow, facts: Facts, architecture: Architecture): Value {
  const { width, mlp } = architecture.expert;
  const heads = headsOf(architecture);
  const { rows, width: actionWidth } = facts.action;
  const { state } = flow;
  const tokens = rows + (state ? 1 : 0);
  return graph.within("expert", () => {
    const condition = flowCondition(graph, flow.time, facts.flow, architecture.expert.time_width);
    // Every action row attends to the whole valid prefix and to every action row: scores [B, 1, 1, S + rows].
    const prefixScores = maskScores(graph, flow.prefixMask);
    const scores = graph.op("Pad", [prefixScores, graph.ints([0, 0, 0, 0, 0, 0, 0, tokens]), graph.scalar(0)]);
    const positions = rowPositions(graph, flow.prefixMask, tokens);
    const angles = rotationAt(graph, positions, flow.prefixMax + tokens, heads.headDim);

    let x = linear(graph, "action_in", flow.latent, { from: actionWidth, to: width, bias: true });
    if (state) {
      const told = stateIn(graph, state, facts, width);
      x = graph.op("Concat", [graph.op("Unsqueeze", [told, graph.ints([1])]), x], { axis: 1 });
    }
    flow.caches.forEach((cache, layer) => {
      graph.within(`blocks.${layer}`, () => {
        const modulations = modulation(graph, condition, architecture.expert, BLOCK_PARTS);
        const [scale1, shift1, gate1, scale2, shift2, gate2] = modulations;
        const normed = graph.op("Add", [rmsScale(graph, x, scale1), shift1]);
        const { q, ...own } = queryKeyValue(graph, normed, width, heads, angles);
        const k = graph.op("Concat", [cache.k, own.k], { axis: 2 });
        const v = graph.op("Concat", [cache.v, own.v], { axis: 2 });
        const mixed = attend(graph, { q, k, v, scores }, heads);
        const attended = blockLinear(graph, "output", mixed, { from: heads.heads * heads.headDim, to: width });
        const middle = graph.op("Add", [x, graph.op("Mul", [attended, gate1])]);
        const fed = graph.op("Add", [rmsScale(graph, middle, scale2), shift2]);
        x = graph.op("Add", [middle, graph.op("Mul", [gatedMlp(graph, fed, width, mlp), gate2])]);
      });
    });
    const [scale, shift] = graph.within("final", () => modulation(graph, condition, architecture.expert, FINAL_PARTS));
    const normed = graph.op("Add", [rmsScale(graph, x, scale), shift]);
    const acting = state ? (graph.split(normed, 1, [1, rows])[1] ?? normed) : normed;
    return tiedOut(graph, "action", acting, { hidden: width, width: actionWidth, flow: facts.flow });
  });
}

/** The state f32 [B, state width] as one token, [B, width]. */
export function stateIn(graph: GraphBuilder, state: Value, facts: Facts, width: number): Value {
  return linear(graph, "state_in", state, { from: facts.state.width, to: width, bias: true, gain: STATE_GAIN });
}

/** The condition of a flow that is asked at `time` f32 [1], one of its own times. */
export function flowCondition(
  graph: GraphBuilder,
  time: Value,
  flow: Facts["flow"],
  width: number,
  shortest = PERIOD_MIN,
): Condition {
  return {
    table: timeTable(graph, flowTimes(flow).slice(0, -1), width, shortest),
    row: flowStep(graph, time, flow),
  };
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

/** The condition as one vector [width] per part, by `adaptive.weight` [time width, parts · width] and bias; pi0.5's `1 + scale` is in it. */
export function modulation<Parts extends readonly number[]>(
  graph: GraphBuilder,
  condition: Condition,
  size: { readonly width: number; readonly time_width: number },
  parts: Parts,
): { [Part in keyof Parts]: Value } {
  const width = parts.length * size.width;
  return graph.within("adaptive", () => {
    const weight = graph.weight("weight", [size.time_width, width], { fanIn: size.time_width, gain: 0.5 });
    const bias = graph.weight("bias", [width], { ...SLIGHT, offsets: parts });
    const table = graph.op("Add", [graph.op("MatMul", [condition.table, weight]), bias]);
    const { row } = condition;
    const dense = row === undefined ? graph.reshape(table, [width]) : graph.op("Gather", [table, row], { axis: 0 });
    const sizes = parts.map(() => size.width);
    return graph.split(dense, 0, sizes) as { [Part in keyof Parts]: Value };
  });
}

/** Position of row i: valid prefix tokens + i; i64 [B, rows]. */
function rowPositions(graph: GraphBuilder, prefixMask: Value, rows: number): Value {
  const count = graph.op("ReduceSum", [graph.cast(prefixMask, "f32"), graph.ints([1])], { keepdims: 1 });
  return graph.op("Add", [graph.cast(count, "i64"), graph.ints([...Array(rows).keys()])]);
}
