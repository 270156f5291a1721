/**
 * Language prefix of a flow-vla: image and prompt tokens to the keys and values that the flow expert reads. Gemma's shape: RMSNorm,
 * rotary positions, grouped key-value heads, gated GELU; attention is bidirectional over valid tokens.
 */
import type { Architecture } from "./architecture.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import {
  attend,
  gatedMlp,
  type Heads,
  linear,
  maskScores,
  type Rotation,
  rmsNorm,
  rotate,
  rotation,
  SHARP_ATTENTION,
  splitHeads,
} from "./layers.ts";

/** Keys after rotation, and values, of one layer: f32 [B, K, N, D] each. */
export interface KeyValue<Kind = Value> {
  readonly k: Kind;
  readonly v: Kind;
}

export function headsOf({ language }: Architecture): Heads {
  return { heads: language.heads, kvHeads: language.kv_heads, headDim: language.head_dim };
}

/** ids i64 [B, T] → f32 [B, T, width] from `embedding` [vocabulary, width]; Gemma's factor √width is folded into the table. */
export function embedTokens(graph: GraphBuilder, ids: Value, vocabulary: number, width: number): Value {
  const table = graph.within("language", () => graph.weight("embedding", [vocabulary, width], { fanIn: 1 }));
  return graph.op("Gather", [table, ids], { axis: 0 });
}

/** x f32 [B, N, width] and valid bool [B, N] → the cache of every layer. A token's position is the number of valid ones before it. */
export function language(
  graph: GraphBuilder,
  embedded: Value,
  valid: Value,
  length: number,
  architecture: Architecture,
): KeyValue[] {
  const { width, layers, mlp } = architecture.language;
  const heads = headsOf(architecture);
  return graph.within("language", () => {
    const scores = maskScores(graph, valid);
    const counted = graph.op("CumSum", [graph.cast(valid, "f32"), graph.ints([1])]);
    const positions = graph.op("Unsqueeze", [graph.op("Sub", [counted, graph.scalar(1)]), graph.ints([2])]);
    const angles = rotation(graph, positions, heads.headDim);
    const caches: KeyValue[] = [];
    let x = embedded;
    for (let layer = 0; layer < layers; layer += 1) {
      // Only keys and values of the last layer are needed.
      const last = layer === layers - 1;
      graph.within(`blocks.${layer}`, () => {
        const normed = rmsNorm(graph, "norm1", x, width);
        const { k, v } = keyValue(graph, normed, width, heads, angles);
        caches.push({ k, v });
        if (last) return;
        const q = query(graph, normed, width, heads, angles);
        const mixed = attend(graph, { q, k, v, scores }, heads, length);
        const attended = linear(graph, "output", mixed, { from: heads.heads * heads.headDim, to: width });
        const middle = graph.op("Add", [x, attended]);
        x = graph.op("Add", [middle, gatedMlp(graph, rmsNorm(graph, "norm2", middle, width), width, mlp)]);
      });
    }
    return caches;
  });
}

/** `query.weight` [width, H · D], rotated: [B, H, N, D]. */
export function query(graph: GraphBuilder, x: Value, width: number, heads: Heads, angles: Rotation): Value {
  const size = { from: width, to: heads.heads * heads.headDim, gain: SHARP_ATTENTION };
  return rotate(graph, splitHeads(graph, linear(graph, "query", x, size), heads.heads, heads.headDim), angles);
}

/** `key.weight` and `value.weight` [width, K · D]; keys are rotated. */
export function keyValue(graph: GraphBuilder, x: Value, width: number, heads: Heads, angles: Rotation): KeyValue {
  const size = { from: width, to: heads.kvHeads * heads.headDim };
  const keys = linear(graph, "key", x, { ...size, gain: SHARP_ATTENTION });
  const values = linear(graph, "value", x, size);
  return {
    k: rotate(graph, splitHeads(graph, keys, heads.kvHeads, heads.headDim), angles),
    v: splitHeads(graph, values, heads.kvHeads, heads.headDim),
  };
}
