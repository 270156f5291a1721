/** Vision tower of a flow-vla: images to prefix tokens. SigLIP's shape: patches, learned positions, pre-norm blocks, a projection. */
import type { Architecture, Facts } from "./architecture.ts";
import { attend, joinedHeads } from "./attention.ts";
import type { GraphBuilder, Value } from "./graph.ts";
import { queryKeyValueParts } from "./language.ts";
import { blockLinear, gelu, layerNorm, linear } from "./layers.ts";
import { SLIGHT } from "./weights.ts";

/**
 * Images f32 [B, `views` · frames, 3, height, width] → tokens [B, all tokens, language width], view by view, row-major.
 */
export function vision(
  graph: GraphBuilder,
  images: Value,
  views: number,
  { image, frames }: Facts,
  { vision: size, language }: Architecture,
): Value {
  const { width, height, tokens } = image;
  const { shuffle = 1, scale } = size;
  const seen = graph.within("vision", () => {
    // Views become part of the batch: attention stays inside one view. [B · views, 3, height, width]
    const flat = graph.reshape(images, [-1, 3, height, width]);
    let x = patchEmbedding(graph, flat, size, tokens * shuffle ** 2);
    for (let layer = 0; layer < size.layers; layer += 1) {
      x = graph.within(`blocks.${layer}`, () => block(graph, x, size));
    }
    x = layerNorm(graph, "norm", x, size.width);
    const isShuffled = size.shuffle !== undefined;
    if (isShuffled) x = pixelShuffle(graph, x, height / size.patch, width / size.patch, size.width, shuffle);
    const from = size.width * shuffle ** 2;
    x = linear(graph, "projection", x, { from, to: language.width, bias: !isShuffled, inner: true });
    return graph.reshape(x, [-1, views * frames.later * tokens, language.width]);
  });
  // Behind the scope, whose last value is the tokens as publishers give them (measure/golden/play.ts).
  return scale === undefined ? seen : graph.op("Mul", [seen, graph.innerScalar(scale)]);
}

/** `factor` × `factor` patches side by side as one token: x [B, rows · columns, W] → [B, rows · columns / factor², factor² · W], row-major (SmolVLM). */
function pixelShuffle(
  graph: GraphBuilder,
  x: Value,
  rows: number,
  columns: number,
  width: number,
  factor: number,
): Value {
  const [down, across] = [rows / factor, columns / factor];
  const apart = graph.reshape(x, [-1, down, factor, across, factor, width]);
  const together = graph.transpose(apart, [0, 1, 3, 2, 4, 5]);
  return graph.reshape(together, [-1, down * across, factor ** 2 * width]);
}

/** `patch.weight` [width, 3, patch, patch], `patch.bias` [width], `positions` [patches, width]; result [B · views, patches, width]. */
function patchEmbedding(
  graph: GraphBuilder,
  images: Value,
  { patch, width }: Architecture["vision"],
  patches: number,
): Value {
  const weight = graph.weight("patch.weight", [width, 3, patch, patch], { fanIn: 3 * patch * patch, gain: 2 }, "f32");
  const bias = graph.weight("patch.bias", [width], SLIGHT, "f32");
  const grid = graph.op("Conv", [images, weight, bias], { kernel_shape: [patch, patch], strides: [patch, patch] });
  const tokens = graph.transpose(graph.reshape(grid, [0, width, patches]), [0, 2, 1]);
  const places = graph.weight("positions", [patches, width], { fanIn: 1, gain: 0.5 }, "f32");
  return graph.inner(graph.op("Add", [tokens, places]));
}

/** x + attention(norm1(x)), then + mlp(norm2(x)); x [B · views, patches, width]. */
function block(graph: GraphBuilder, x: Value, size: Architecture["vision"]): Value {
  const { width, heads, mlp } = size;
  const shape = { heads, kvHeads: heads, headDim: width / heads };
  const attended = graph.within("attention", () => {
    const normed = layerNorm(graph, "norm", x, width);
    const { headDim } = shape;
    const all = joinedHeads(graph, normed, queryKeyValueParts(heads, heads), { from: width, headDim, bias: true });
    const [q, k, v] = graph.split(all, 1, [heads, heads, heads]) as [Value, Value, Value];
    const mixed = attend(graph, { q, k, v }, shape);
    return blockLinear(graph, "output", mixed, { from: width, to: width, bias: true });
  });
  const middle = graph.op("Add", [x, attended]);
  const fed = graph.within("mlp", () => {
    const normed = layerNorm(graph, "norm", middle, width);
    const hidden = gelu(graph, blockLinear(graph, "up", normed, { from: width, to: mlp, bias: true }));
    return blockLinear(graph, "down", hidden, { from: mlp, to: width, bias: true });
  });
  return graph.op("Add", [middle, fed]);
}
