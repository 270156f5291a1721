/**
 * Layers that more than one part of a family uses. Shapes: B batch, N tokens of a sequence, W width, H query heads, K key-value heads
 * (H = K · G), D head dimension. Weight matrices are [inputs, outputs], so that y = x · w + b.
 *
 * A graph that computes in half precision keeps float32 where published policies do (openpi): patches and their positions, what depends
 * on the time alone, the first and the last product of the flow, the latent and its velocity, the sums inside norms, scores with their
 * mask and softmax. All else is of `graph.build.compute`: the blocks' weights and activations, embeddings, caches.
 */
import { present } from "../std/assert.ts";
import type { Facts } from "./architecture.ts";
import { float8Product } from "./float8.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { halfProduct } from "./half.ts";
import { int8Product } from "./quantize.ts";
import { geometric, type Matrix, SLIGHT } from "./weights.ts";

export interface Heads {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

export interface Rotation {
  /** [B, N, D / 2] each, of the type that the graph computes in. */
  readonly cos: Value;
  readonly sin: Value;
}

/** A score for which softmax gives exactly 0. */
export const MASKED = -1e30;
const NORM_EPSILON = 1e-6;
const ROPE_BASE = 10_000;
/**
 * Gain of queries and keys. Scores of random weights with unit inputs have a standard deviation of its square. At 1 a block would nearly
 * average its tokens, and a single patch or word would be hard to see in the actions; much above, float32 rounding grows in them.
 */
export const SHARP_ATTENTION = 1.3;

interface Linear {
  readonly from: number;
  readonly to: number;
  readonly gain?: number;
  readonly bias?: boolean;
  /** Of the type that the graph computes in; else f32. */
  readonly inner?: boolean;
}

/** `linear` with a matrix of a block, which is int8, bf16 or float8 in a bundle of such weights: nearly all products of a model are these. */
export function blockLinear(graph: GraphBuilder, name: string, x: Value, size: Linear): Value {
  const matrices = [{ name, to: size.to, gain: size.gain ?? 1 }];
  return smallerProduct(graph, x, matrices, size) ?? linear(graph, name, x, size);
}

/** The product with matrices of blocks that are not kept as float32; of the type that the graph computes in. */
function smallerProduct(
  graph: GraphBuilder,
  x: Value,
  matrices: readonly Matrix[],
  size: { readonly from: number; readonly bias?: boolean },
): Value | undefined {
  const { precision, compute } = graph.build;
  if (precision === "f32" && compute === "f32") return undefined;
  const product = precision === "int8" ? int8Product : precision === "fp8" ? float8Product : halfProduct;
  return product(graph, x, matrices, size);
}

/** x · w, plus b with `bias`: `<name>.weight` [from, to], `<name>.bias` [to]. */
export function linear(graph: GraphBuilder, name: string, x: Value, size: Linear): Value {
  return graph.within(name, () => {
    const { from, to, gain = 1, inner = false } = size;
    const kept = inner ? graph.build.compute : "f32";
    const product = graph.op("MatMul", [x, graph.weight("weight", [from, to], { fanIn: from, gain }, kept)]);
    if (size.bias !== true) return product;
    return graph.op("Add", [product, graph.weight("bias", [to], SLIGHT, kept)]);
  });
}

/** Part of a product that several matrices share: heads · D columns. */
export interface Part {
  readonly name: string;
  readonly heads: number;
  readonly gain: number;
}

/**
 * x [B, N, `from`] · the matrices of all parts: [B, all heads, N, D], part after part; plus their biases with `bias`. Names are those of
 * `linear`. One wide product is faster than several narrow ones; ONNX Runtime joins the matrices once, when it loads the graph.
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
  const each = (axis: number, make: (part: Part, to: number) => Value) => {
    const all = parts.map((part) => graph.within(part.name, () => make(part, part.heads * headDim)));
    return graph.op("Concat", all, { axis });
  };
  const weights = each(1, ({ gain }, to) => graph.weight("weight", [from, to], { fanIn: from, gain }));
  const product = graph.op("MatMul", [x, weights]);
  const sum = bias ? graph.op("Add", [product, each(0, (_, to) => graph.weight("bias", [to], SLIGHT))]) : product;
  return splitHeads(graph, sum, heads, headDim);
}

/** LayerNorm over the last axis: `<name>.scale`, `<name>.bias`. */
export function layerNorm(graph: GraphBuilder, name: string, x: Value, width: number): Value {
  return graph.within(name, () => {
    const scale = graph.weight("scale", [width], { ...SLIGHT, offsets: [1] });
    const bias = graph.weight("bias", [width], SLIGHT);
    return graph.op("LayerNormalization", [x, scale, bias], { axis: -1, epsilon: { float: NORM_EPSILON } });
  });
}

/** x / √(mean(x²) + ε) · `<name>.scale`; Gemma's 1 + w is stored as the scale. */
export function rmsNorm(graph: GraphBuilder, name: string, x: Value, width: number): Value {
  const scale = graph.within(name, () => graph.weight("scale", [width], { ...SLIGHT, offsets: [1] }));
  return rmsScale(graph, x, scale);
}

/** x / √(mean(x²) + ε) · scale, for a scale [W] that may be computed. */
export function rmsScale(graph: GraphBuilder, x: Value, scale: Value): Value {
  return graph.op("RMSNormalization", [x, scale], { axis: -1, epsilon: { float: NORM_EPSILON } });
}

/** GELU in its tanh form, as SigLIP and Gemma use it. */
export function gelu(graph: GraphBuilder, x: Value): Value {
  return graph.op("Gelu", [x], { approximate: "tanh" });
}

/** x · sigmoid(x). */
export function swish(graph: GraphBuilder, x: Value): Value {
  return graph.op("Mul", [x, graph.op("Sigmoid", [x])]);
}

/** Gemma's MLP: (gelu(x · gate) ∘ (x · up)) · down. */
export function gatedMlp(graph: GraphBuilder, x: Value, width: number, hidden: number): Value {
  return graph.within("mlp", () => {
    const gate = gelu(graph, blockLinear(graph, "gate", x, { from: width, to: hidden }));
    const up = blockLinear(graph, "up", x, { from: width, to: hidden });
    return blockLinear(graph, "down", graph.op("Mul", [gate, up]), { from: hidden, to: width });
  });
}

/** Angles position · base^(−i / (D/2)) for i < D/2, of positions f32 [..., N, 1]. Only their sines and cosines are rounded. */
export function rotation(graph: GraphBuilder, positions: Value, headDim: number): Rotation {
  const half = headDim / 2;
  // One more than needed: the last power is the base itself, which no head uses.
  const wavelengths = geometric(ROPE_BASE, half + 1).slice(0, half);
  const frequencies = Float32Array.from(wavelengths, (wavelength) => 1 / wavelength);
  const angles = graph.op("Mul", [positions, graph.floats("rope.frequencies", [half], frequencies)]);
  return { cos: graph.inner(graph.op("Cos", [angles])), sin: graph.inner(graph.op("Sin", [angles])) };
}

/** The angles of positions i64 [B, N], all below `count`, from a table that ONNX Runtime computes when it loads the graph. */
export function rotationAt(graph: GraphBuilder, positions: Value, count: number, headDim: number): Rotation {
  const all = graph.floats("rope.positions", [count, 1], Float32Array.from(Array(count).keys()));
  const { cos, sin } = rotation(graph, all, headDim);
  const row = (table: Value) => graph.op("Gather", [table, positions], { axis: 0 });
  return { cos: row(cos), sin: row(sin) };
}

/** Rotates the halves of each head [B, heads, N, D] by the angles. */
export function rotate(graph: GraphBuilder, x: Value, { cos, sin }: Rotation): Value {
  return graph.op("RotaryEmbedding", [x, cos, sin]);
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
 * softmax(q · kᵀ / √D + scores) · v of q [B, H, N, D] with k, v [B, K, M, D]; result [B, N, H · D].
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

/** Keys and values that stand after one another. */
export interface Seen {
  readonly k: Value;
  readonly v: Value;
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
  const joined = (part: "k" | "v") => {
    const values = seen.map((one) => one[part]);
    return values.length === 1 ? (values[0] ?? "") : graph.op("Concat", values, { axis: 2 });
  };
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

/** Random and tied part of `<name>_out`; together they give latents a standard deviation of about 0.7. */
const OUT_GAIN = 0.5;
const OUT_TIED = 0.7;

/**
 * `<name>_out.weight` [hidden, width] and its bias: random, plus a part of `<name>_in` transposed. Like a trained flow it then
 * points away from its noise, so that rows end inside the columns' ranges instead of being clamped.
 */
export function tiedOut(
  graph: GraphBuilder,
  name: string,
  x: Value,
  { hidden, width, flow }: { hidden: number; width: number; flow: Facts["flow"] },
): Value {
  const towards = flow.t_end > flow.t_start ? 1 : -1;
  const values = graph.seeded(`${name}_out.weight`, [hidden, width], { fanIn: hidden, gain: OUT_GAIN });
  const into = graph.seeded(`${name}_in.weight`, [width, hidden], { fanIn: width });
  for (let index = 0; index < values.length; index += 1) {
    const unit = Math.floor(index / width);
    values[index] = (values[index] ?? 0) - towards * OUT_TIED * (into[(index % width) * hidden + unit] ?? 0);
  }
  const bias = graph.weight(`${name}_out.bias`, [width], SLIGHT, "f32");
  return graph.op("Add", [
    graph.op("MatMul", [graph.single(x), graph.seededAs(`${name}_out.weight`, [hidden, width], values)]),
    bias,
  ]);
}
