/**
 * Layers that more than one part of a family uses. Shapes: B batch, N tokens of a sequence, W width, D head dimension. Weight
 * matrices are [inputs, outputs], so that y = x · w + b.
 *
 * A graph that computes in half precision keeps float32 where published policies do (openpi): patches and their positions, what depends
 * on the time alone, the first and the last product of the flow, the latent and its velocity, the sums inside norms, scores with their
 * mask and softmax. All else is of `graph.build.compute`: the blocks' weights and activations, embeddings, caches.
 */
import type { Facts } from "./architecture.ts";
import { geometric } from "./geometric.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { halfProduct, int8Product } from "./smaller-weights.ts";
import { type Matrix, SLIGHT, type Spread } from "./weights.ts";

export interface Rotation {
  /** [B, N, D / 2] each, of the type that the graph computes in. */
  readonly cos: Value;
  readonly sin: Value;
}

const NORM_EPSILON = 1e-6;
const ROPE_BASE = 10_000;
/** Standard deviation of what the random part of a flow's last matrix gives. */
const OUT_GAIN = 0.5;

interface Linear {
  readonly from: number;
  readonly to: number;
  readonly gain?: number;
  readonly bias?: boolean;
  /** The matrix has the type that the graph computes in; else f32. */
  readonly inner?: boolean;
  readonly towards?: Spread["towards"];
}

/** `linear` with a matrix of a block, which is int8 or bf16 in a bundle of such weights: nearly all products of a model are these. */
export function blockLinear(graph: GraphBuilder, name: string, x: Value, size: Linear): Value {
  const matrices = [{ name, to: size.to, gain: size.gain ?? 1 }];
  return smallerProduct(graph, x, matrices, size) ?? linear(graph, name, x, size);
}

/** The product with matrices of blocks that are not kept as float32; of the type that the graph computes in. */
export function smallerProduct(
  graph: GraphBuilder,
  x: Value,
  matrices: readonly Matrix[],
  size: { readonly from: number; readonly bias?: boolean },
): Value | undefined {
  const { precision, compute } = graph.build;
  if (precision === "f32" && compute === "f32") return undefined;
  const product = precision === "int8" ? int8Product : halfProduct;
  return product(graph, x, matrices, size);
}

/** The last product of a flow, of `x` in float32: what it gives is a velocity. `<name>.weight`, whose name ends in `_out`, and `<name>.bias`. */
export function velocityOut(
  graph: GraphBuilder,
  name: string,
  x: Value,
  { from, to, flow }: { from: number; to: number; flow: Facts["flow"] },
): Value {
  const towards = flow.t_end > flow.t_start ? 1 : -1;
  return linear(graph, name, graph.single(x), { from, to, bias: true, gain: OUT_GAIN, towards });
}

/** x · w, plus b with `bias`: `<name>.weight` [from, to], `<name>.bias` [to]. */
export function linear(graph: GraphBuilder, name: string, x: Value, size: Linear): Value {
  return graph.within(name, () => {
    const { from, to, gain = 1, inner = false, towards } = size;
    const kept = inner ? graph.build.compute : "f32";
    const spread = { fanIn: from, gain, ...(towards && { towards }) };
    const product = graph.op("MatMul", [x, graph.weight("weight", [from, to], spread, kept)]);
    if (size.bias !== true) return product;
    return graph.op("Add", [product, graph.weight("bias", [to], SLIGHT, kept)]);
  });
}

/** LayerNorm over the last axis: `<name>.scale`, `<name>.bias`. */
export function layerNorm(graph: GraphBuilder, name: string, x: Value, width: number, epsilon = NORM_EPSILON): Value {
  return graph.within(name, () => {
    const scale = graph.weight("scale", [width], { ...SLIGHT, offsets: [1] });
    const bias = graph.weight("bias", [width], SLIGHT);
    return graph.op("LayerNormalization", [x, scale, bias], { axis: -1, epsilon: { float: epsilon } });
  });
}

/** x / √(mean(x²) + ε) · `<name>.scale`; Gemma's 1 + w is stored as the scale. */
export function rmsNorm(graph: GraphBuilder, name: string, x: Value, width: number, epsilon?: number): Value {
  const scale = graph.within(name, () => graph.weight("scale", [width], { ...SLIGHT, offsets: [1] }));
  return rmsScale(graph, x, scale, epsilon);
}

/** x / √(mean(x²) + ε) · scale, for a scale [W] that may be computed. */
export function rmsScale(graph: GraphBuilder, x: Value, scale: Value, epsilon = NORM_EPSILON): Value {
  return graph.op("RMSNormalization", [x, scale], { axis: -1, epsilon: { float: epsilon } });
}

/** GELU in its tanh form, as SigLIP and Gemma use it. */
export function gelu(graph: GraphBuilder, x: Value): Value {
  return graph.op("Gelu", [x], { approximate: "tanh" });
}

/** x · sigmoid(x). */
export function swish(graph: GraphBuilder, x: Value): Value {
  return graph.op("Mul", [x, graph.op("Sigmoid", [x])]);
}

/** (activation(x · gate) ∘ (x · up)) · down: Gemma's MLP with GELU, Llama's with SiLU. */
export function gatedMlp(
  graph: GraphBuilder,
  x: Value,
  width: number,
  hidden: number,
  activation: "gelu" | "silu" = "gelu",
): Value {
  return graph.within("mlp", () => {
    const active = activation === "gelu" ? gelu : swish;
    const gate = active(graph, blockLinear(graph, "gate", x, { from: width, to: hidden }));
    const up = blockLinear(graph, "up", x, { from: width, to: hidden });
    return blockLinear(graph, "down", graph.op("Mul", [gate, up]), { from: hidden, to: width });
  });
}

/**
 * Angles position / base^(i / (D/2)) for i < D/2, of positions f32 [..., N, 1]. Powers, quotients and angles are float32, one after the
 * other, as the publishers' PyTorch code has them. In half precision only sines and cosines are rounded.
 */
export function rotation(graph: GraphBuilder, positions: Value, headDim: number, base = ROPE_BASE): Rotation {
  const half = headDim / 2;
  // One more than needed: the last power is the base itself, which no head uses.
  const wavelengths = geometric(base, half + 1).slice(0, half);
  const frequencies = Float32Array.from(wavelengths, (wavelength) => 1 / Math.fround(wavelength));
  const angles = graph.op("Mul", [positions, graph.floats("rope.frequencies", [half], frequencies)]);
  return { cos: graph.inner(graph.op("Cos", [angles])), sin: graph.inner(graph.op("Sin", [angles])) };
}

/** The angles of positions i64 [B, N], all below `count`, from a table that ONNX Runtime computes when it loads the graph. */
export function rotationAt(
  graph: GraphBuilder,
  positions: Value,
  count: number,
  { headDim, base }: { headDim: number; base?: number | undefined },
): Rotation {
  const all = graph.floats("rope.positions", [count, 1], Float32Array.from(Array(count).keys()));
  const { cos, sin } = rotation(graph, all, headDim, base);
  const row = (table: Value) => graph.op("Gather", [table, positions], { axis: 0 });
  return { cos: row(cos), sin: row(sin) };
}
