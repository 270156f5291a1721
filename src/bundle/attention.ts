/**
 * Attention, as products and a softmax. Shapes: B batch, N rows that ask, M keys, W width, H query heads, K key-value heads
 * (H = K · G), D head dimension.
 *
 * Queries are [B, H, N, D]; keys and values are [B, K, M, D].
 */
import { present } from "../std/assert.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { smallerProduct } from "./layers.ts";
import { biased, joinedAlong } from "./smaller-weights.ts";

export interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** The base of rotary positions; absent, 10000. */
  readonly base?: number | undefined;
}

/** A score for which softmax gives exactly 0. */
export const MASKED = -1e30;
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
  if (smaller !== undefined) return splitHeads(graph, smaller, heads, headDim);
  const weights = joinedAlong(graph, matrices, 1, ({ to, gain }) =>
    graph.weight("weight", [from, to], { fanIn: from, gain }),
  );
  const product = graph.op("MatMul", [x, weights]);
  return splitHeads(graph, bias ? biased(graph, product, matrices) : product, heads, headDim);
}

/** [B, N, heads · D] → [B, heads, N, D]. */
export function splitHeads(graph: GraphBuilder, x: Value, heads: number, headDim: number): Value {
  return graph.transpose(graph.reshape(x, [0, 0, heads, headDim]), [0, 2, 1, 3]);
}

/** Scores to add: 0 for a valid key of [B, N], else `MASKED`. Result f32 [B, 1, 1, N]. */
export function maskScores(graph: GraphBuilder, valid: Value): Value {
  const scores = graph.op("Where", [valid, graph.scalar(0), graph.scalar(MASKED)]);
  return graph.op("Unsqueeze", [scores, graph.ints([1, 2])]);
}

/**
 * Scores to add where not all tokens see each other, f32 [B, 1, G · N, M]: `attend` has a row for each of the G query heads of a key. They are 0
 * for a valid key whose block is not above that of the token that asks; else `MASKED`. `valid` is bool [B, M], `blocks` f32 [B, M] and `asking`
 * f32 [B or 1, N].
 */
export function blockScores(
  graph: GraphBuilder,
  { valid, blocks, asking }: { valid: Value; blocks: Value; asking: Value },
  { heads, kvHeads }: Heads,
): Value {
  const of = (value: Value, axes: readonly number[]) => graph.op("Unsqueeze", [value, graph.ints(axes)]);
  const sees = graph.op("LessOrEqual", [of(blocks, [1, 2]), of(asking, [1, 3])]);
  const both = graph.op("And", [of(valid, [1, 2]), sees]);
  const scores = graph.op("Where", [both, graph.scalar(0), graph.scalar(MASKED)]);
  const repeats = heads / kvHeads;
  return repeats === 1 ? scores : graph.op("Concat", Array<Value>(repeats).fill(scores), { axis: 2 });
}

/**
 * softmax(q · kᵀ / √D + scores) · v of the queries of H heads with keys and values of K; result [B, N, H · D]. `scores` are f32 [B, 1, 1 or G · N, M] of 0 and `MASKED`.
 *
 * Query heads that share a key head become further rows of one product, so that no key is repeated.
 */
export function attend(
  graph: GraphBuilder,
  { q, k, v, scores }: { q: Value; k: Value; v: Value; scores?: Value },
  { heads, kvHeads, headDim }: Heads,
): Value {
  const scaled = scaledQueries(graph, q, { heads, kvHeads, headDim });
  const products = graph.op("MatMul", [scaled, graph.transpose(k, [0, 1, 3, 2])]);
  const mixed = graph.op("MatMul", [softmax(graph, products, scores), v]);
  return joinedRows(graph, mixed, { heads, kvHeads, headDim });
}

/** Keys and values that stand after one another: those of caches, and last the graph's own. */
export interface KeySpan {
  readonly k: Value;
  readonly v: Value;
  /** M; of the first ones it need not be known. */
  readonly count?: number;
}

/**
 * `attend` over several keys and values, as if they were one tensor. A graph in half precision, which is for a GPU, reads them where they
 * lie: it puts their scores together, N numbers for a key in place of its 2 · D. A CPU is faster with one product.
 */
export function attendAll(
  graph: GraphBuilder,
  { q, seen, scores }: { q: Value; seen: readonly KeySpan[]; scores: Value },
  heads: Heads,
): Value {
  if (graph.build.compute === "f32" || seen.length === 1) {
    const joined = (part: "k" | "v") => {
      const values = seen.map((one) => one[part]);
      return values.length === 1 ? (values[0] ?? "") : graph.op("Concat", values, { axis: 2 });
    };
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
