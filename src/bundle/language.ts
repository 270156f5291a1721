/**
 * Language prefix of a flow-vla: image and prompt tokens to the keys and values that the flow expert reads. Gemma's and Llama's shape:
 * RMSNorm, rotary positions, grouped key-value heads, gated MLP; tokens see all valid ones but those of later blocks.
 */
import { present } from "../std/assert.ts";
import type { Architecture } from "./architecture.ts";
import { attend, blockScores, type Heads, joinedHeads, maskScores, type Part, SHARP_ATTENTION } from "./attention.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { blockLinear, gatedMlp, type Rotation, rmsNorm, rotationAt } from "./layers.ts";

/** Keys after rotation, and values, of one layer, of the type that the graph computes in; [B, K, N, D]. */
export interface KeyValue<Kind = Value> {
  readonly k: Kind;
  readonly v: Kind;
}

export function headsOf({ language }: Architecture): Heads {
  return {
    heads: language.heads,
    kvHeads: language.kv_heads,
    headDim: language.head_dim,
    base: language.rope_base,
  };
}

/**
 * ids i64 [B, T] → [B, T, width], of the type that the graph computes in: rows of `embedding` [vocabulary, width] times `scale`. A published table
 * is kept as it is, so that one of bfloat16 has the same values in a bundle of bf16 weights.
 */
export function embedTokens(
  graph: GraphBuilder,
  ids: Value,
  vocabulary: number,
  { width, scale }: { width: number; scale?: number | undefined },
): Value {
  const { precision, compute } = graph.build;
  const half = precision === "bf16";
  const kept = half ? "bf16" : compute;
  const table = graph.within("language", () => graph.weight("embedding", [vocabulary, width], { fanIn: 1 }, kept));
  const rows = graph.op("Gather", [table, ids], { axis: 0 });
  const read = half ? graph.cast(rows, "f32") : rows;
  return scale === undefined ? read : graph.op("Mul", [read, graph.innerScalar(scale)]);
}

/** The tokens of a prefix. */
interface Tokens {
  /** [B, N, width], N at most `most`. */
  readonly embedded: Value;
  readonly most: number;
  /** bool [B, N]. */
  readonly valid: Value;
  /** f32 [B, N]: a token does not see those of a higher block. Absent, all see each other. */
  readonly blocks: Value | undefined;
}

/** The cache of every layer. A token's position is the number of valid ones before it. */
export function language(
  graph: GraphBuilder,
  { embedded, valid, most, blocks }: Tokens,
  architecture: Architecture,
): KeyValue[] {
  const { width, layers, mlp, activation, epsilon } = architecture.language;
  const heads = headsOf(architecture);
  return graph.within("language", () => {
    const counted = graph.op("CumSum", [graph.cast(valid, "f32"), graph.ints([1])]);
    const scores =
      blocks === undefined ? maskScores(graph, valid) : blockScores(graph, { valid, blocks, asking: blocks }, heads);
    // A token before the first valid one has −1, which reads the last row of the table: no token sees it.
    const positions = graph.cast(graph.op("Sub", [counted, graph.scalar(1)]), "i64");
    const angles = rotationAt(graph, positions, most, heads);
    const caches: KeyValue[] = [];
    let x = embedded;
    for (let layer = 0; layer < layers; layer += 1) {
      // Only keys and values of the last layer are needed.
      const last = layer === layers - 1;
      graph.within(`blocks.${layer}`, () => {
        const normed = rmsNorm(graph, "norm1", x, width, epsilon);
        if (last) {
          caches.push(keyValue(graph, normed, width, heads, angles));
          return;
        }
        const { q, k, v } = queryKeyValue(graph, normed, width, heads, angles);
        caches.push({ k, v });
        const mixed = attend(graph, { q, k, v, scores }, heads);
        const attended = blockLinear(graph, "output", mixed, { from: heads.heads * heads.headDim, to: width });
        const middle = graph.op("Add", [x, attended]);
        const fed = rmsNorm(graph, "norm2", middle, width, epsilon);
        x = graph.op("Add", [middle, gatedMlp(graph, fed, width, mlp, activation)]);
      });
    }
    return caches;
  });
}

/** Queries, keys and values of x, of H heads and twice of K; queries and keys are rotated. */
export function queryKeyValue(
  graph: GraphBuilder,
  x: Value,
  width: number,
  { heads, kvHeads, headDim }: Heads,
  angles: Rotation,
): KeyValue & { readonly q: Value } {
  const all = joinedHeads(graph, x, queryKeyValueParts(heads, kvHeads), { from: width, headDim });
  const [turning, v] = graph.split(all, 1, [heads + kvHeads, kvHeads]);
  const turned = rotate(graph, present(turning, "queries and keys"), angles);
  const [q, k] = graph.split(turned, 1, [heads, kvHeads]);
  return { q: present(q, "queries"), k: present(k, "keys"), v: present(v, "values") };
}

/** Keys and values alone. */
export function keyValue(
  graph: GraphBuilder,
  x: Value,
  width: number,
  { kvHeads, headDim }: Heads,
  angles: Rotation,
): KeyValue {
  const all = joinedHeads(graph, x, keyValueParts(kvHeads), { from: width, headDim });
  const [k, v] = graph.split(all, 1, [kvHeads, kvHeads]);
  return { k: rotate(graph, present(k, "keys"), angles), v: present(v, "values") };
}

/** Rotates the halves of each head by the angles. */
export function rotate(graph: GraphBuilder, x: Value, { cos, sin }: Rotation): Value {
  return graph.op("RotaryEmbedding", [x, cos, sin]);
}

/** `query.weight` [width, H · D], `key.weight` and `value.weight` [width, K · D]. */
export function queryKeyValueParts(heads: number, kvHeads: number): Part[] {
  return [{ name: "query", heads, gain: SHARP_ATTENTION }, ...keyValueParts(kvHeads)];
}

export function keyValueParts(heads: number): [key: Part, value: Part] {
  return [
    { name: "key", heads, gain: SHARP_ATTENTION },
    { name: "value", heads, gain: 1 },
  ];
}
