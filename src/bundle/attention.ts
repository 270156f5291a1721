/**
 * Attention, in the form that a bundle is built with. Shapes: B batch, N rows that ask, M keys, W width, H query heads, K key-value heads
 * (H = K · G), D head dimension.
 *
 * Queries, keys and values of a graph's own tokens lie as its form wants them: [B, heads, N, D], or [B, N, heads · D] for the fused operator,
 * whose kernels for CUDA take them so. What a cache has is [B, K, M, D] in every form.
 */
import { present } from "../std/assert.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { type Rotation, smallerProduct } from "./layers.ts";
import { DATA_TYPE } from "./onnx-schema.ts";
import { biased, joinedAlong } from "./smaller-weights.ts";

export interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

/** A score for which softmax gives exactly 0. */
export const MASKED = -1e30;
/** The same in half precision: −1e30 is infinite in f16. */
const MASKED_HALF = -6e4;
/**
 * Gain of queries and keys. Scores of random weights with unit inputs have a standard deviation of its square. At 1 a block would nearly
 * average its tokens, and a single patch or word would be hard to see in the actions; much above, float32 rounding grows in them.
 */
export const SHARP_ATTENTION = 1.3;

/** Part of a product that several matrices share: heads · D columns. */
export interface Part {
  readonly name: string;
  readonly heads: number;
  readonly gain: number;
}

/**
 * x [B, N, `from`] · the matrices of all parts, their heads part after part; plus their biases with `bias`. Names are those of
 * `linear`. One wide product is faster than several narrow ones.
 */
export function joinedHeads(
  graph: GraphBuilder,
  x: Value,
  parts: readonly Part[],
  { from, headDim, bias = false }: { from: number; headDim: number; bias?: boolean },
): Value {
  const heads = parts.reduce((count, part) => count + part.heads, 0);
  const matrices = parts.map(({ name, heads, gain }) => ({ name, to: heads * headDim, gain }));
  const smaller = smallerProduct(graph, x, matrices, { from, bias });
  if (smaller !== undefined) return ownHeads(graph, smaller, heads, headDim);
  const weights = joinedAlong(graph, matrices, 1, ({ to, gain }) =>
    graph.weight("weight", [from, to], { fanIn: from, gain }),
  );
  const product = graph.op("MatMul", [x, weights]);
  return ownHeads(graph, bias ? biased(graph, product, matrices) : product, heads, headDim);
}

/** Cuts heads into pieces of this size. */
export function partHeads(graph: GraphBuilder, x: Value, counts: readonly number[], headDim: number): Value[] {
  if (graph.build.attention !== "fused") return graph.split(x, 1, counts);
  return graph.split(
    x,
    2,
    counts.map((count) => count * headDim),
  );
}

/** Rotates the halves of each of `heads` by the angles. */
export function rotate(graph: GraphBuilder, x: Value, { cos, sin }: Rotation, heads: number): Value {
  return graph.op("RotaryEmbedding", [x, cos, sin], graph.build.attention === "fused" ? { num_heads: heads } : {});
}

/** [B, N, heads · D] as attention takes it. */
export function ownHeads(graph: GraphBuilder, x: Value, heads: number, headDim: number): Value {
  return graph.build.attention === "fused" ? x : splitHeads(graph, x, heads, headDim);
}

/** Keys or values as a cache has them, [B, K, N, D]. */
export function cachedHeads(graph: GraphBuilder, x: Value, heads: number, headDim: number): Value {
  return graph.build.attention === "fused" ? splitHeads(graph, x, heads, headDim) : x;
}

/** [B, N, heads · D] → [B, heads, N, D]. */
function splitHeads(graph: GraphBuilder, x: Value, heads: number, headDim: number): Value {
  return graph.transpose(graph.reshape(x, [0, 0, heads, headDim]), [0, 2, 1, 3]);
}

/** Scores to add: 0 for a valid key of [B, N], else `MASKED`. Result f32 [B, 1, 1, N]. */
export function maskScores(graph: GraphBuilder, valid: Value): Value {
  const scores = graph.op("Where", [valid, graph.scalar(0), graph.scalar(MASKED)]);
  return graph.op("Unsqueeze", [scores, graph.ints([1, 2])]);
}

/**
 * What `attend` and `attendAll` take for `scores` f32 [B, 1, 1 or N, M] of 0 and `MASKED`: these; for the fused operator [B, 1, N, M] of the type
 * that it computes in, which it wants for every row. `rows` is N; absent, the rows are the keys.
 */
export function scoresOf(graph: GraphBuilder, scores: Value, rows?: number): Value {
  if (graph.build.attention !== "fused") return scores;
  const finite = graph.inner(graph.op("Mul", [scores, graph.scalar(MASKED_HALF / MASKED)]));
  return rows === undefined ? overKeys(graph, finite) : graph.op("Expand", [finite, graph.ints([1, 1, rows, 1])]);
}

/**
 * The number of keys is a multiple of this one: ONNX Runtime's memory-efficient attention for CUDA takes scores with a row of a multiple of 4 numbers, which
 * buckets of a prompt, all multiples of 16, leave as it is; 8 makes a row of half precision whole 16 bytes.
 */
const ALIGNED = 8;

/** Tokens to put behind a graph's own, hidden from all others, so that fused attention meets an aligned number of keys in place of `keys`. */
export function idleTokens(graph: GraphBuilder, keys: number): number {
  return graph.build.attention === "fused" ? (ALIGNED - (keys % ALIGNED)) % ALIGNED : 0;
}

/** Scores [B, 1, 1, M] as [B, 1, M, M]; how many keys there are, a run may choose. */
function overKeys(graph: GraphBuilder, scores: Value): Value {
  const zeros = graph.op("Mul", [graph.transpose(scores, [0, 1, 3, 2]), graph.innerScalar(0)]);
  return graph.op("Add", [scores, zeros]);
}

/**
 * softmax(q · kᵀ / √D + scores) · v of the queries of H heads with keys and values of K; result [B, N, H · D]. `scores` are of `scoresOf`.
 *
 * Query heads that share a key head become further rows of one product, so that no key is repeated.
 */
export function attend(
  graph: GraphBuilder,
  { q, k, v, scores }: { q: Value; k: Value; v: Value; scores?: Value },
  { heads, kvHeads, headDim }: Heads,
): Value {
  if (graph.build.attention === "fused") return fused(graph, { q, own: { k, v }, scores }, { heads, kvHeads });
  const scaled = scaledQueries(graph, q, { heads, kvHeads, headDim });
  const products = graph.op("MatMul", [scaled, graph.transpose(k, [0, 1, 3, 2])]);
  const mixed = graph.op("MatMul", [softmax(graph, products, scores), v]);
  return joinedRows(graph, mixed, { heads, kvHeads, headDim });
}

interface KeyValues {
  readonly k: Value;
  readonly v: Value;
}

/** Keys and values that stand after one another: those of caches, and last the graph's own. */
export interface Seen extends KeyValues {
  /** M; of the first ones it need not be known. */
  readonly count?: number;
}

/**
 * `attend` over several keys and values, as if they were one tensor. In a graph whose attention is `apart` they are read where they lie:
 * what is put together is their scores, N numbers for a key in place of its 2 · D.
 */
export function attendAll(
  graph: GraphBuilder,
  { q, seen, scores }: { q: Value; seen: readonly Seen[]; scores: Value },
  heads: Heads,
): Value {
  const joined = (part: "k" | "v", of = seen) => {
    const values = of.map((one) => one[part]);
    return values.length === 1 ? (values[0] ?? "") : graph.op("Concat", values, { axis: 2 });
  };
  if (graph.build.attention === "fused" && seen.length > 1) {
    const [own, before] = [present(seen.at(-1), "the last ones"), seen.slice(0, -1)];
    return fused(graph, { q, own, past: { k: joined("k", before), v: joined("v", before) }, scores }, heads);
  }
  if (graph.build.attention === "joined" || seen.length === 1) {
    return attend(graph, { q, k: joined("k"), v: joined("v"), scores }, heads);
  }
  const scaled = scaledQueries(graph, q, heads);
  const products = seen.map(({ k }) => graph.op("MatMul", [scaled, graph.transpose(k, [0, 1, 3, 2])]));
  const weights = softmax(graph, graph.op("Concat", products, { axis: 3 }), scores);
  // Counted from the end: how long the first part is, a run may choose.
  const behind = seen.map((_, index) => seen.slice(index + 1).reduce((sum, { count }) => sum + present(count, "M"), 0));
  const mixed = seen.map(({ v }, index) => {
    const before = index === 0 ? 0 : -present(behind[index - 1], "what follows");
    const after = behind[index] === 0 ? Number.MAX_SAFE_INTEGER : -present(behind[index], "what follows");
    const part = graph.op("Slice", [weights, graph.ints([before]), graph.ints([after]), graph.ints([3])]);
    return graph.op("MatMul", [part, v]);
  });
  return joinedRows(
    graph,
    mixed.reduce((sum, part) => graph.op("Add", [sum, part])),
    heads,
  );
}

/**
 * ONNX's operator Attention over the keys of `past` and then `own`, which scales by 1/√D itself; its softmax is of float32 as elsewhere.
 * Its second and third output, all keys and values, nobody reads: ONNX Runtime 1.30 wants them named where there is a past.
 */
function fused(
  graph: GraphBuilder,
  { q, own, past, scores = "" }: { q: Value; own: KeyValues; past?: KeyValues; scores?: Value | undefined },
  { heads, kvHeads }: Pick<Heads, "heads" | "kvHeads">,
): Value {
  const inputs = [q, own.k, own.v, scores, ...(past ? [past.k, past.v] : [])];
  const given = past || scores !== "" ? inputs : inputs.slice(0, 3);
  const attributes = { q_num_heads: heads, kv_num_heads: kvHeads, softmax_precision: DATA_TYPE.f32 };
  return present(graph.ops("Attention", given, past ? 3 : 1, attributes)[0], "rows");
}

/** q [B, H, N, D] / √D as [B, K, G · N, D]. */
function scaledQueries(graph: GraphBuilder, q: Value, { heads, kvHeads, headDim }: Heads): Value {
  const grouped = kvHeads === heads ? q : graph.reshape(q, [0, kvHeads, -1, headDim]);
  return graph.op("Mul", [grouped, graph.innerScalar(1 / Math.sqrt(headDim))]);
}

/** Scores of products [B, K, G · N, M], in f32, as weights of the type that the graph computes in. */
function softmax(graph: GraphBuilder, products: Value, scores: Value | undefined): Value {
  const single = graph.single(products);
  const logits = scores === undefined ? single : graph.op("Add", [single, scores]);
  return graph.inner(graph.op("Softmax", [logits], { axis: -1 }));
}

/** [B, K, G · N, D] → [B, N, H · D]. */
function joinedRows(graph: GraphBuilder, mixed: Value, { heads, kvHeads, headDim }: Heads): Value {
  const apart = kvHeads === heads ? mixed : graph.reshape(mixed, [0, heads, -1, headDim]);
  return graph.reshape(graph.transpose(apart, [0, 2, 1, 3]), [0, 0, heads * headDim]);
}
