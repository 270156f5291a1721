/**
 * What stands around attention and MLP in the blocks of a flow's expert, and before its last product: a norm ahead, and behind it a sum.
 * Shapes: B batch, N tokens, W width.
 */
import { present } from "../std/assert.ts";
import type { Architecture } from "./architecture.ts";
import { type Condition, modulation } from "./flow-condition.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { rmsNorm, rmsScale } from "./layers.ts";

/** Means of the biases of scale, shift and gate, for attention and MLP; and of the final norm's scale and shift. */
export const BLOCK_PARTS = [1, 0, 1, 1, 0, 1] as const;
export const FINAL_PARTS = [1, 0] as const;

/** x [B, N, W] → its norm; and x with what was computed of that added. */
export interface Sublayer {
  norm(x: Value): Value;
  sum(x: Value, computed: Value): Value;
}

/** Both sublayers of the block of the current scope. Without a condition they are plain: `norm1.scale` and `norm2.scale`. */
export function blockSublayers(
  graph: GraphBuilder,
  condition: Condition | undefined,
  size: Architecture["expert"],
): readonly [attention: Sublayer, mlp: Sublayer] {
  if (condition === undefined) return [plain(graph, "norm1", size), plain(graph, "norm2", size)];
  const [scale1, shift1, gate1, scale2, shift2, gate2] = modulation(graph, condition, size, BLOCK_PARTS);
  return [
    adaptive(graph, condition, size, scale1, shift1, gate1),
    adaptive(graph, condition, size, scale2, shift2, gate2),
  ];
}

/** The norm before the last product. */
export function finalNorm(
  graph: GraphBuilder,
  condition: Condition | undefined,
  size: Architecture["expert"],
): Sublayer["norm"] {
  if (condition === undefined) return plain(graph, "final", size).norm;
  const [scale, shift] = graph.within("final", () => modulation(graph, condition, size, FINAL_PARTS));
  return adaptive(graph, condition, size, scale, shift).norm;
}

function plain(graph: GraphBuilder, name: string, { width, epsilon }: Architecture["expert"]): Sublayer {
  return {
    norm: (x) => rmsNorm(graph, name, x, width, epsilon),
    sum: (x, computed) => graph.op("Add", [x, computed]),
  };
}

/** x + gate · computed(norm(x) · scale + shift), where a condition gives all three. */
function adaptive(
  graph: GraphBuilder,
  { each }: Condition,
  { width, epsilon }: Architecture["expert"],
  scale: Value,
  shift: Value,
  gate?: Value,
): Sublayer {
  return {
    norm: (x) => {
      // One scale for each row is no scale of the operator's: it stands behind it.
      const scaled = each
        ? graph.op("Mul", [rmsScale(graph, x, ones(graph, width), epsilon), scale])
        : rmsScale(graph, x, scale, epsilon);
      return graph.op("Add", [scaled, shift]);
    },
    sum: (x, computed) => graph.op("Add", [x, graph.op("Mul", [computed, present(gate, "a gate")])]),
  };
}

function ones(graph: GraphBuilder, width: number): Value {
  return graph.inner(graph.floats("ones", [width], new Float32Array(width).fill(1)));
}
