/**
 * Products of a build for GPUs with matrices of one byte a weight, FLOAT8E4M3FN (e4m3.ts), and activations rounded to the same type, in
 * the one form that TensorRT 10 makes an FP8 product of: both sides pass QuantizeLinear or begin as float8, then DequantizeLinear, then
 * MatMul in the type that the graph computes in. Each side has one scale. A scale for each column, as int8 has it, TensorRT takes too,
 * but computes with weights widened to half precision; a float of eight bits has the same precision at any scale and gains nothing by it.
 *
 * Scales are powers of two, so that what is dequantised is exact in f16 and bf16: two devices differ by nothing but sums. They are of the
 * type that the graph computes in, because DequantizeLinear gives the type of its scale, and ONNX Runtime's kernels want both alike.
 * Providers that have no such product compute it as it is written. ONNX Runtime folds no DequantizeLinear of a constant as long as it
 * looks for such pairs, so that matrices stay bytes in its memory too.
 */
import type { GraphBuilder, Value } from "./graph.ts";
import { biased } from "./half.ts";
import { type Matrix, reachOf } from "./weights.ts";

/**
 * Scale of all activations: e4m3 reaches to ±112 with it, and keeps its precision down to 2^-8. What goes into a product of a block is
 * normed, or made of such numbers: over all parity observations its root mean square is 0.4 to 1.1, and the largest, between the products
 * of an MLP, 25; of pi0.5 at its published size 16. What lay beyond the reach would be cut off.
 */
const ACTIVATION_SCALE = 2 ** -2;
/**
 * How many scales the largest weight is at most. e4m3 has room for 448, but the scale of a matrix of full size would then be below 2^-14,
 * and a device may take such an f16 for zero. At 16 one of a thousand uniform weights lies below 2^-6, where e4m3 has fewer bits.
 */
const WEIGHT_MAX = 16;

/** `halfProduct` with matrices of float8, kept as `a+b+c.weight` with `a+b+c.weight.scale`. */
export function float8Product(
  graph: GraphBuilder,
  x: Value,
  matrices: readonly Matrix[],
  { from, bias = false }: { from: number; bias?: boolean },
): Value {
  const { compute } = graph.build;
  const scale = scaleOf(Math.max(...matrices.map(({ gain }) => reachOf({ fanIn: from, gain }))));
  const weight = graph.joinedWeight(matrices, from, "f8", scale);
  const weights = [weight, graph.filled(`${weight}.scale`, [], compute, scale), zero(graph)];
  const rounding = [graph.innerScalar(ACTIVATION_SCALE), zero(graph)];
  const rounded = graph.op("QuantizeLinear", [x, ...rounding]);
  const product = graph.op("MatMul", [
    graph.op("DequantizeLinear", [rounded, ...rounding]),
    graph.op("DequantizeLinear", weights),
  ]);
  return bias ? biased(graph, product, matrices) : product;
}

/**
 * The power of two that brings weights of [-reach, reach] to `WEIGHT_MAX` at most, and to more than half of it. Seeded weights are uniform
 * there (weights.ts), so that no weight need be read before the first one is written.
 */
export function scaleOf(reach: number): number {
  let scale = 1;
  while (reach > scale * WEIGHT_MAX) scale *= 2;
  while (reach <= (scale * WEIGHT_MAX) / 2) scale /= 2;
  return scale;
}

/** The zero point, whose type is that of the rounded numbers; it is zero in every kind of float8. */
function zero(graph: GraphBuilder): Value {
  return graph.filled("zero f8", [], "f8", 0);
}
