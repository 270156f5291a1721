/** Flow expert of a flow-vla: noisy action rows, time and prefix cache to a velocity; adaptive RMSNorm by the time, as in pi0.5. */
import { present } from "../std/assert.ts";
import type { Architecture, Facts } from "./architecture.ts";
import { attendAll, maskScores } from "./attention.ts";
import { flowCondition, modulation, rowCondition } from "./flow-condition.ts";
import { flowTimes } from "./flow-times.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { headsOf, type KeyValue, queryKeyValue } from "./language.ts";
import { blockLinear, gatedMlp, linear, rmsScale, rotationAt, velocityOut } from "./layers.ts";

/** Means of the biases of scale, shift and gate, for attention and MLP; and of the final norm's scale and shift. */
export const BLOCK_PARTS = [1, 0, 1, 1, 0, 1] as const;
export const FINAL_PARTS = [1, 0] as const;
/** Makes a state token as strong as the rows, although most of its values are padding. */
const STATE_GAIN = 1.5;

export interface Flow {
  /** f32 [B, rows, width]. */
  readonly latent: Value;
  /** f32 [1], or [B, rows] where a chunk may continue rows. */
  readonly time: Value;
  /** f32 [B, width]: normalised state, one token before the rows. */
  readonly state: Value | undefined;
  /** bool [B, S], S at most `prefixMax`. */
  readonly prefixMask: Value;
  readonly prefixMax: number;
  /** Per layer, [B, K, S, D], of the type that the graph computes in. */
  readonly caches: readonly KeyValue[];
}

/** The velocity f32 [B, rows, action width]. */
export function expert(graph: GraphBuilder, flow: Flow, facts: Facts, architecture: Architecture): Value {
  const { width, mlp } = architecture.expert;
  const heads = headsOf(architecture);
  const { rows, width: actionWidth } = facts.action;
  const { state } = flow;
  const buckets = architecture.inputs?.time_buckets;
  const each = facts.action.prefix !== undefined;
  const tokens = rows + (state ? 1 : 0);
  return graph.within("expert", () => {
    const asked = { times: flowTimes(facts.flow), buckets, width: architecture.expert.time_width };
    const condition = each
      ? rowCondition(graph, flow.time, state !== undefined, asked)
      : flowCondition(graph, flow.time, asked);
    const modulated = (x: Value, scale: Value, shift: Value) => {
      // One scale for each row is no scale of the operator's: it stands behind it.
      const plain = condition.each
        ? graph.op("Mul", [rmsScale(graph, x, ones(graph, width)), scale])
        : rmsScale(graph, x, scale);
      return graph.op("Add", [plain, shift]);
    };
    // Every action row attends to the whole valid prefix and to every action row: scores [B, 1, 1, S + rows].
    const prefixScores = maskScores(graph, flow.prefixMask);
    const scores = graph.op("Pad", [prefixScores, graph.ints([0, 0, 0, 0, 0, 0, 0, tokens]), graph.scalar(0)]);
    const positions = rowPositions(graph, flow.prefixMask, tokens);
    const angles = rotationAt(graph, positions, flow.prefixMax + tokens, heads);

    let x = linear(graph, "action_in", flow.latent, { from: actionWidth, to: width, bias: true });
    if (state) {
      const told = stateIn(graph, state, facts, width);
      const token = graph.op("Unsqueeze", [told, graph.ints([1])]);
      x = graph.op("Concat", [token, x], { axis: 1 });
    }
    x = graph.inner(x);
    flow.caches.forEach((cache, layer) => {
      graph.within(`blocks.${layer}`, () => {
        const modulations = modulation(graph, condition, architecture.expert, BLOCK_PARTS);
        const [scale1, shift1, gate1, scale2, shift2, gate2] = modulations;
        const normed = modulated(x, scale1, shift1);
        const { q, ...own } = queryKeyValue(graph, normed, width, heads, angles);
        const mixed = attendAll(graph, { q, seen: [cache, { ...own, count: tokens }], scores }, heads);
        const attended = blockLinear(graph, "output", mixed, { from: heads.heads * heads.headDim, to: width });
        const middle = graph.op("Add", [x, graph.op("Mul", [attended, gate1])]);
        const fed = modulated(middle, scale2, shift2);
        x = graph.op("Add", [middle, graph.op("Mul", [gatedMlp(graph, fed, width, mlp), gate2])]);
      });
    });
    const [scale, shift] = graph.within("final", () => modulation(graph, condition, architecture.expert, FINAL_PARTS));
    const normed = modulated(x, scale, shift);
    const acting = state ? present(graph.split(normed, 1, [1, rows])[1], "the rows") : normed;
    return velocityOut(graph, "action_out", acting, { from: width, to: actionWidth, flow: facts.flow });
  });
}

function ones(graph: GraphBuilder, width: number): Value {
  return graph.inner(graph.floats("ones", [width], new Float32Array(width).fill(1)));
}

/** The state f32 [B, state width] as one token, [B, width]. */
export function stateIn(graph: GraphBuilder, state: Value, facts: Facts, width: number): Value {
  return linear(graph, "state_in", state, { from: facts.state.width, to: width, bias: true, gain: STATE_GAIN });
}

/** Position of row i: valid prefix tokens + i; i64 [B, rows]. */
function rowPositions(graph: GraphBuilder, prefixMask: Value, rows: number): Value {
  const count = graph.op("ReduceSum", [graph.cast(prefixMask, "f32"), graph.ints([1])], { keepdims: 1 });
  return graph.op("Add", [graph.cast(count, "i64"), graph.ints([...Array(rows).keys()])]);
}
