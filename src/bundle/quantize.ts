/**
 * Matrices of weights as int8, and products with them. A column, the weights of one output, has a float32 scale: weight = int8 · scale,
 * where the largest of the column is ±127. ONNX Runtime rounds the activations to int8 as well, and sums products of integers: with
 * VNNI a processor does four times as many of them at once as of float32.
 */
import { present } from "../std/assert.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { type Matrix, SLIGHT } from "./weights.ts";

/** The largest int8 that a weight becomes: −128 is left out, so that a weight and its negative become each other's. */
const LARGEST = 127;

/**
 * x [..., `from`] · the matrices side by side, + `<name>.bias` with `bias`: [..., all their outputs]. One product is faster than
 * several; ONNX Runtime joins the matrices once, when it loads the graph. The scales are `<name>.weight.scale`.
 */
export function int8Product(
  graph: GraphBuilder,
  x: Value,
  matrices: readonly Matrix[],
  { from, bias = false }: { from: number; bias?: boolean },
): Value {
  const joined = (axis: number, make: (matrix: Matrix) => Value): Value => {
    const all = matrices.map((matrix) => graph.within(matrix.name, () => make(matrix)));
    return all.length === 1 ? present(all[0], "the matrix") : graph.op("Concat", all, { axis });
  };
  const kept = new Map<Matrix, Int8Matrix>();
  const weights = joined(1, (matrix) => {
    const { to, gain } = matrix;
    const int8 = quantized(graph.seeded("weight", [from, to], { fanIn: from, gain }), to);
    kept.set(matrix, int8);
    return graph.int8("weight", [from, to], int8.values);
  });
  const scales = joined(0, (matrix) => {
    return graph.seededAs("weight.scale", [matrix.to], present(kept.get(matrix), "its scales").scales);
  });
  const noZeroPoint = "";
  const sums = bias ? [noZeroPoint, joined(0, ({ to }) => graph.weight("bias", [to], SLIGHT))] : [];
  return graph.contributed("DynamicQuantizeMatMul", [x, weights, scales, ...sums]);
}

interface Int8Matrix {
  /** As the weights, row-major. */
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
  // Of the scale as it is kept, in float32: the quotient may be above LARGEST by its rounding, and rounds to it.
  const values = Int8Array.from(weights, (weight, at) => Math.round(weight / present(scales[at % columns], "a scale")));
  return { values, scales };
}
