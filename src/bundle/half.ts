/**
 * Matrices of weights in two bytes, half as many. In a graph that computes in such a type the product is of that type. Else they are
 * bfloat16, and cast to float32 where they are used, and all sums are of float32: ONNX
 * Runtime's CPU provider multiplies no bfloat16. It is told not to fold the casts: each would become a float32 copy, twice as large as the
 * matrix (native/src/bundle/weights.rs).
 */
import type { GraphBuilder, Value } from "./graph.ts";
import { type Matrix, SLIGHT } from "./weights.ts";

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
function biased(graph: GraphBuilder, product: Value, matrices: readonly Matrix[]): Value {
  const biases = matrices.map(({ name, to }) => graph.within(name, () => graph.weight("bias", [to], SLIGHT)));
  return graph.op("Add", [product, biases.length === 1 ? (biases[0] ?? "") : graph.op("Concat", biases, { axis: 0 })]);
}
