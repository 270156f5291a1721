/**
 * Products with matrices of weights that are smaller than float32: int8, or half precision.
 *
 * A column of int8, the weights of one output, has a float32 scale: weight = int8 · scale, where the largest of the column is ±127. ONNX Runtime rounds the activations to int8 as well, and sums products of integers: with
 * VNNI a processor does four times as many of them at once as of float32.
 */
import { present } from "../std/assert.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { type Matrix, SLIGHT } from "./weights.ts";

/** The largest int8 that a weight becomes: −128 is left out, so that a weight and its negative become each other's. */
const LARGEST = 127;

/**
 * x [..., `from`] · the matrices side by side, + `<name>.bias` with `bias`: [..., all their outputs]. One product is faster than
 * several. The scales are `<name>.weight.scale`.
 */
export function int8Product(
  graph: GraphBuilder,
  x: Value,
  matrices: readonly Matrix[],
  { from, bias = false }: { from: number; bias?: boolean },
): Value {
  const kept = new Map<Matrix, Int8Matrix>();
  const weights = joinedAlong(graph, matrices, 1, (matrix) => {
    const { to, gain } = matrix;
    const int8 = quantized(graph.wholeWeight("weight", [from, to], { fanIn: from, gain }), to);
    kept.set(matrix, int8);
    return graph.int8("weight", [from, to], int8.values);
  });
  const scales = joinedAlong(graph, matrices, 0, (matrix) => {
    return graph.computedWeight("weight.scale", [matrix.to], present(kept.get(matrix), "its scales").scales);
  });
  const noZeroPoint = "";
  const sums = bias ? [noZeroPoint, biases(graph, matrices)] : [];
  return graph.contributed("DynamicQuantizeMatMul", [x, weights, scales, ...sums]);
}

interface Int8Matrix {
  /** Row-major, in the order of the weights. */
  readonly values: Int8Array;
  /** One for each column. */
  readonly scales: Float32Array;
}

/** Rounds weights [inputs, `columns`] to the nearest multiple of their column's scale. A column of zeros has the scale 1. */
export function quantized(weights: Float32Array, columns: number): Int8Matrix {
  const scales = new Float32Array(columns);
  weights.forEach((weight, at) => {
    scales[at % columns] = Math.max(present(scales[at % columns], "a scale"), Math.abs(weight));
  });
  for (const [column, largest] of scales.entries()) scales[column] = largest === 0 ? 1 : largest / LARGEST;
  // The scale is divided by as it is kept, in float32: the quotient may be above LARGEST by its rounding, and rounds to it.
  const values = Int8Array.from(weights, (weight, at) => Math.round(weight / present(scales[at % columns], "a scale")));
  return { values, scales };
}

/**
 * x [..., `from`] · the matrices side by side, + their `<name>.bias` with `bias`: [..., all their outputs]. They are written side by side,
 * as `a+b+c.weight`: to join them in the graph would be a copy at each run.
 */
export function halfProduct(
  graph: GraphBuilder,
  x: Value,
  matrices: readonly Matrix[],
  { from, bias = false }: { from: number; bias?: boolean },
): Value {
  const { compute } = graph.build;
  const matrix =
    compute === "f32"
      ? graph.widened(graph.joinedWeight(matrices, from, "bf16"))
      : graph.joinedWeight(matrices, from, compute);
  const product = graph.op("MatMul", [x, matrix]);
  return bias ? biased(graph, product, matrices) : product;
}

/** A product with the matrices side by side, plus the `<name>.bias` of each. */
export function biased(graph: GraphBuilder, product: Value, matrices: readonly Matrix[]): Value {
  return graph.op("Add", [product, biases(graph, matrices)]);
}

function biases(graph: GraphBuilder, matrices: readonly Matrix[]): Value {
  return joinedAlong(graph, matrices, 0, ({ to }) => graph.weight("bias", [to], SLIGHT));
}

/** What each of the matrices has by its name, along `axis`. ONNX Runtime joins it once, when it loads the graph. */
export function joinedAlong(
  graph: GraphBuilder,
  matrices: readonly Matrix[],
  axis: number,
  make: (matrix: Matrix) => Value,
): Value {
  const all = matrices.map((matrix) => graph.within(matrix.name, () => make(matrix)));
  return all.length === 1 ? present(all[0], "the matrix") : graph.op("Concat", all, { axis });
}
