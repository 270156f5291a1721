/** Prefill and extend: observed camera frames become the keys and values of one block of the episode's memory. */
import { present } from "../../std/assert.ts";
import { timeCondition } from "../expert.ts";
import { GraphBuilder, type Port, type Value } from "../graph.ts";
import { embedTokens, type KeyValue } from "../language.ts";
import { MASKED } from "../layers.ts";
import type { Weights } from "../weights.ts";
import { lengthInput, memoryInput, type Plan } from "./plan.ts";
import {
  angles,
  branched,
  frameIndex,
  framePositions,
  latentTokens,
  lengthScores,
  PERIOD_MIN,
  transform,
} from "./transformer.ts";

/** images, tokens, token_mask and, to extend, the memory → the block of the observed frames, and the text for the flow. */
export function buildReader(plan: Plan, name: "prefill" | "extend", weights: Weights): GraphBuilder {
  const { facts, memory, size, branches } = plan;
  const later = name === "extend";
  const graph = new GraphBuilder(name, facts, weights);
  const perCamera = later ? facts.frames.later : facts.frames.first;
  const latents = later ? memory.later : memory.first;
  const { width: columns, height: lines } = facts.image;
  const text: Port["shape"] = [branches, facts.prompt.tokens_max];
  const views = facts.cameras.length * perCamera;
  const images = graph.input({ name: "images", dtype: "f32", shape: [1, views, 3, lines, columns] }, "images");
  const tokens = graph.input({ name: "tokens", dtype: "i64", shape: text }, "tokens");
  const tokenMask = graph.input({ name: "token_mask", dtype: "bool", shape: text }, "token_mask");
  const memoryLength = later ? lengthInput(graph, "memory") : undefined;
  const memories = later ? plan.blocks.map((block) => memoryInput(graph, plan, block)) : [];
  const context = embedTokens(graph, tokens, plan.vocabulary, size.width);
  const count = latents * memory.tokens;
  const block = graph.within("world", () => {
    const seen = latentTokens(graph, plan, encode(graph, plan, images, perCamera, latents), latents);
    const scores = graph.op(
      "Concat",
      [
        ...(memoryLength ? [lengthScores(graph, memoryLength, plan.window, count)] : []),
        causalScores(graph, latents, memory.tokens),
      ],
      { axis: 3 },
    );
    const start = memoryLength && frameIndex(graph, memoryLength, memory.tokens);
    const made: KeyValue[] = [];
    transform(graph, plan, {
      x: branched(graph, seen, branches),
      count,
      angles: angles(graph, plan, framePositions(latents, memory.tokens), start),
      // Observed frames have no noise, as at the end of the flow.
      condition: timeCondition(
        graph,
        graph.floats("time.clean", [1], Float32Array.of(facts.flow.t_end)),
        size.time_width,
        PERIOD_MIN,
      ),
      past: (layer) => memories.slice(layer, layer + 1),
      scores,
      context,
      contextMask: tokenMask,
      keep: (kept) => made.push(kept),
    });
    return made;
  });
  graph.output(graph.op("Identity", [context]), plan.context, "cache");
  graph.output(graph.op("Identity", [tokenMask]), plan.contextMask, "cache");
  plan.blocks.forEach(({ k, v }, layer) => {
    const own = present(block[layer], "keys and values of a layer");
    graph.output(padded(graph, own.k, plan.block - count), k, "block");
    graph.output(padded(graph, own.v, plan.block - count), v, "block");
  });
  return graph;
}

/** Images [1, cameras · frames, 3, h, w] → latent frames [1, latents · cameras · patches, channels], frame by frame. */
function encode(graph: GraphBuilder, plan: Plan, images: Value, perCamera: number, latents: number): Value {
  const { facts, size, covered } = plan;
  const { width: columns, height: lines, tokens: patches } = facts.image;
  const cameras = facts.cameras.length;
  // A first frame is repeated for all frames of its latent frame.
  const repeats = (covered * latents) / perCamera;
  const frames = graph.reshape(images, [cameras * latents, (3 * perCamera) / latents, lines, columns]);
  const channels = repeats === 1 ? frames : graph.op("Concat", Array(repeats).fill(frames), { axis: 1 });
  const { patch, channels: out } = size;
  const weight = graph.weight("encode.weight", [out, 3 * covered, patch, patch], {
    fanIn: 3 * covered * patch * patch,
    gain: 2,
  });
  const bias = graph.weight("encode.bias", [out], { fanIn: 100 });
  const grid = graph.op("Conv", [channels, weight, bias], { kernel_shape: [patch, patch], strides: [patch, patch] });
  const apart = graph.transpose(graph.reshape(grid, [cameras, latents, out, patches]), [1, 0, 3, 2]);
  return graph.reshape(apart, [1, latents * cameras * patches, out]);
}

/** Adds `tokens` zeros at the end of N in [R, heads, N, D]. */
function padded(graph: GraphBuilder, x: Value, tokens: number): Value {
  if (tokens === 0) return graph.op("Identity", [x]);
  return graph.op("Pad", [x, graph.ints([0, 0, 0, 0, 0, 0, tokens, 0]), graph.scalar(0)]);
}

/** Scores [1, 1, N, N] that hide later frames from earlier ones. */
function causalScores(graph: GraphBuilder, latents: number, tokens: number): Value {
  const count = latents * tokens;
  const frame = (token: number) => Math.floor(token / tokens);
  const values = Float32Array.from({ length: count * count }, (_, index) =>
    frame(index % count) <= frame(Math.floor(index / count)) ? 0 : MASKED,
  );
  return graph.floats("scores.causal", [1, 1, count, count], values);
}
