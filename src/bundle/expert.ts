/**
 * Flow expert of a flow-vla: noisy action rows, time and prefix cache to a velocity. The time conditions the norms of each block, as in
 * pi0.5, or is joined with the rows before them, as in pi0 and SmolVLA.
 */
import { present } from "../std/assert.ts";
import type { Architecture, Facts } from "./architecture.ts";
import { attendAll } from "./attention.ts";
import { expertAttention, expertBlocks } from "./expert-attention.ts";
import { flowCondition, joinedTime, rowCondition } from "./flow-condition.ts";
import { flowTimes } from "./flow-times.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { headsOf, type KeyValue } from "./language.ts";
import { blockLinear, gatedMlp, linear, velocityOut } from "./layers.ts";
import { blockSublayers, finalNorm } from "./sublayer.ts";

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
  /** What each block reads of the prefix, [B, K, S, D], of the type that the graph computes in. */
  readonly caches: readonly KeyValue[];
}

/** The velocity f32 [B, rows, action width]. */
export function expert(graph: GraphBuilder, flow: Flow, facts: Facts, architecture: Architecture): Value {
  const { width, mlp, activation, time = "adaptive" } = architecture.expert;
  const heads = headsOf(architecture);
  const { rows, width: actionWidth } = facts.action;
  const { state } = flow;
  const isJoined = time === "joined";
  const buckets = architecture.inputs?.time_buckets;
  const each = facts.action.prefix !== undefined;
  const tokens = rows + (state ? 1 : 0);
  return graph.within("expert", () => {
    const wanted = { times: flowTimes(facts.flow), buckets, width: architecture.expert.time_width, joined: isJoined };
    const told = each
      ? rowCondition(graph, flow.time, state !== undefined && !isJoined, wanted)
      : flowCondition(graph, flow.time, wanted);
    const condition = isJoined ? undefined : told;
    const attending = expertAttention(graph, flow, tokens, architecture);

    let x = linear(graph, "action_in", flow.latent, { from: actionWidth, to: width, bias: true });
    if (isJoined) x = joinedTime(graph, told, x, width);
    if (state) {
      const token = graph.op("Unsqueeze", [stateIn(graph, state, facts, width), graph.ints([1])]);
      x = graph.op("Concat", [token, x], { axis: 1 });
    }
    x = graph.inner(x);
    expertBlocks(architecture).forEach((block, index) => {
      graph.within(`blocks.${index}`, () => {
        const [attention, feeding] = blockSublayers(graph, condition, architecture.expert);
        const cache = present(flow.caches[index], "cache of a block");
        const mixed = attendAll(graph, attending(block, attention.norm(x), cache), heads);
        const attended = blockLinear(graph, "output", mixed, { from: heads.heads * heads.headDim, to: width });
        const middle = attention.sum(x, attended);
        x = feeding.sum(middle, gatedMlp(graph, feeding.norm(middle), width, mlp, activation));
      });
    });
    const normed = finalNorm(graph, condition, architecture.expert)(x);
    const acting = state ? present(graph.split(normed, 1, [1, rows])[1], "the rows") : normed;
    return velocityOut(graph, "action_out", acting, { from: width, to: actionWidth, flow: facts.flow });
  });
}

/** The state f32 [B, state width] as one token, [B, width]. */
export function stateIn(graph: GraphBuilder, state: Value, facts: Facts, width: number): Value {
  return linear(graph, "state_in", state, { from: facts.state.width, to: width, bias: true, gain: STATE_GAIN });
}
