/**
 * Family world-action: one causal transformer over observed frames and future actions (DreamZero and its like). Observed
 * latent frames become keys and values of an episode's memory; the denoise graph predicts the next latent frames and the
 * action rows together, and only the rows are used.
 *
 * Three graphs: prefill reads a first observation, extend a later one on top of the memory, denoise is one flow step. With
 * guidance everything that depends on the text has two rows, with and without the instruction.
 */
import { present } from "../../std/assert.ts";
import type { Facts, WorldArchitecture } from "../architecture.ts";
import { MASKED } from "../attention.ts";
import { stateIn } from "../expert.ts";
import { commonRules, firstBroken } from "../fault.ts";
import { flowCondition, modulation, timeTable } from "../flow-condition.ts";
import { flowTimes } from "../flow-times.ts";
import { GraphBuilder, type Graphs, type Port, type Value } from "../graph.ts";
import { imageInput } from "../image-input.ts";
import { embedTokens, type KeyValue } from "../language.ts";
import { linear, rmsScale, velocityOut } from "../layers.ts";
import { FINAL_PARTS } from "../sublayer.ts";
import type { Weights } from "../weights.ts";
import { layOut, lengthInput, memoryInput, type Plan } from "./plan.ts";
import {
  angles,
  branched,
  frameIndex,
  framePositions,
  latentTokens,
  lengthScores,
  PERIOD_MIN,
  textKeyValues,
  transform,
} from "./transformer.ts";

/** All graphs with random weights; `vocabulary` is the number of token ids. */
export function worldAction(
  facts: Facts,
  architecture: WorldArchitecture,
  vocabulary: number,
  weights: Weights,
): Graphs {
  const plan = layOut(facts, architecture, vocabulary, weights.build);
  return {
    prefill: buildReader(plan, "prefill", weights),
    extend: buildReader(plan, "extend", weights),
    denoise: buildDenoise(plan, weights),
  };
}

/** The first rule that is broken: a JSON path of model.json, what was found there and what was expected. */
export function worldActionMismatch(facts: Facts, { transformer: size }: WorldArchitecture): string | undefined {
  const { image, frames, memory, cameras } = facts;
  if (memory === null) return "/memory: found null, expected the window of an episode";
  const tokens = cameras.length * image.tokens;
  return firstBroken([
    ...commonRules(facts, size.patch, "transformer", size.time_width),
    [memory.tokens === tokens, "/memory/tokens", memory.tokens, `${tokens}, the patches of all cameras`],
    [
      memory.first === frames.first,
      "/memory/first",
      memory.first,
      `${frames.first}, a latent frame for each first frame`,
    ],
    [frames.later % memory.later === 0, "/frames/later", frames.later, `a multiple of ${memory.later} latent frames`],
    [size.head_dim % 2 === 0, "/architecture/transformer/head_dim", size.head_dim, "an even number"],
  ]);
}

/** Prefill and extend: images, tokens, token_mask and, to extend, the memory → the block of the observed frames, and the text's keys and values for the flow. */
function buildReader(plan: Plan, name: "prefill" | "extend", weights: Weights): GraphBuilder {
  const { facts, memory, size, branches } = plan;
  const later = name === "extend";
  const graph = new GraphBuilder(name, facts, weights);
  const perCamera = later ? facts.frames.later : facts.frames.first;
  const latents = later ? memory.later : memory.first;
  const text: Port["shape"] = [branches, facts.prompt.tokens_max];
  const views = facts.cameras.length * perCamera;
  const images = imageInput(
    graph,
    { name: "images", lead: [1, views], width: facts.image.width, height: facts.image.height },
    facts.image,
  );
  const tokens = graph.input({ name: "tokens", dtype: "i64", shape: text }, "tokens");
  const tokenMask = graph.input({ name: "token_mask", dtype: "bool", shape: text }, "token_mask");
  const memoryLength = later ? lengthInput(graph, "memory") : undefined;
  const memories = later ? plan.blocks.map((block) => memoryInput(graph, plan, block)) : [];
  const read = embedTokens(graph, tokens, plan.vocabulary, { width: size.width });
  const count = latents * memory.tokens;
  const { block, texts } = graph.within("world", () => {
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
    const told = textKeyValues(graph, plan, read);
    transform(graph, plan, {
      x: branched(graph, seen, branches),
      count,
      angles: angles(graph, plan, framePositions(latents, memory.tokens), start),
      // Observed frames have no noise, as at the end of the flow.
      condition: { table: timeTable(graph, [facts.flow.t_end], size.time_width, PERIOD_MIN), row: undefined },
      past: (layer) => memories.slice(layer, layer + 1).map((one) => ({ ...one, count: plan.window })),
      scores,
      text: (layer) => present(told[layer], "the text of a layer"),
      textMask: tokenMask,
      keep: (kept) => made.push(kept),
    });
    return { block: made, texts: told };
  });
  graph.output(graph.op("Identity", [tokenMask]), plan.textMask, "cache");
  plan.texts.forEach(({ k, v }, layer) => {
    const own = present(texts[layer], "the text of a layer");
    graph.output(own.k, k, "cache");
    graph.output(own.v, v, "cache");
  });
  plan.blocks.forEach(({ k, v }, layer) => {
    const own = present(block[layer], "keys and values of a layer");
    graph.output(padded(graph, plan, own.k, plan.block - count), k, "block");
    graph.output(padded(graph, plan, own.v, plan.block - count), v, "block");
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
  const spread = { fanIn: 3 * covered * patch * patch, gain: 2 };
  const weight = graph.weight("encode.weight", [out, 3 * covered, patch, patch], spread, "f32");
  const bias = graph.weight("encode.bias", [out], { fanIn: 100 }, "f32");
  const grid = graph.op("Conv", [channels, weight, bias], { kernel_shape: [patch, patch], strides: [patch, patch] });
  const apart = graph.transpose(graph.reshape(grid, [cameras, latents, out, patches]), [1, 0, 3, 2]);
  return graph.reshape(apart, [1, latents * cameras * patches, out]);
}

/** Adds `tokens` zeros at the end of N in [R, heads, N, D]. */
function padded(graph: GraphBuilder, { branches, size }: Plan, x: Value, tokens: number): Value {
  if (tokens === 0) return graph.op("Identity", [x]);
  if (graph.build.compute === "f32") {
    return graph.op("Pad", [x, graph.ints([0, 0, 0, 0, 0, 0, tokens, 0]), graph.scalar(0)]);
  }
  // CUDA pads no bfloat16.
  const zeros = graph.filled("padding", [branches, size.heads, tokens, size.head_dim], graph.build.compute, 0);
  return graph.op("Concat", [x, zeros], { axis: 2 });
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

/** Denoise: noisy rows, noisy latent frames, time, state, memory and block → both velocities: one flow step. */
function buildDenoise(plan: Plan, weights: Weights): GraphBuilder {
  const { facts, memory, size, branches } = plan;
  const { rows, width: actionWidth } = facts.action;
  const graph = new GraphBuilder("denoise", facts, weights);
  const video = memory.later * memory.tokens;
  const latent = graph.input({ name: "x_t", dtype: "f32", shape: [1, rows, actionWidth] }, "latent");
  const videoLatent = graph.input({ name: "z_t", dtype: "f32", shape: [1, video, size.channels] }, "video_latent");
  const time = graph.input({ name: "t", dtype: "f32", shape: [1] }, "time");
  const state = graph.input({ name: "state", dtype: "f32", shape: [1, facts.state.width] }, "state");
  const textMask = graph.input(plan.textMask, "cache");
  const texts = plan.texts.map(({ k, v }) => ({ k: graph.input(k, "cache"), v: graph.input(v, "cache") }));
  const memoryLength = lengthInput(graph, "memory");
  const blockLength = lengthInput(graph, "block");
  const past = plan.blocks.map((block) => [
    { ...memoryInput(graph, plan, block), count: plan.window },
    { k: graph.input(block.k, "block"), v: graph.input(block.v, "block"), count: plan.block },
  ]);
  const count = video + 1 + rows;
  const [velocity, videoVelocity] = graph.within("world", () => {
    const told = stateIn(graph, state, facts, size.width);
    const acting = linear(graph, "action_in", latent, { from: actionWidth, to: size.width, bias: true });
    const placed = graph.op("Add", [acting, graph.weight("rows", [rows, size.width], { fanIn: 1, gain: 0.5 }, "f32")]);
    const parts = [
      latentTokens(graph, plan, videoLatent, memory.later),
      graph.op("Unsqueeze", [told, graph.ints([1])]),
      placed,
    ];
    const times = flowTimes(facts.flow);
    const condition = flowCondition(graph, time, { times, width: size.time_width, shortest: PERIOD_MIN });
    // The rows are spread evenly over the frames that are predicted.
    const spread = Array.from({ length: rows }, (_, row) => (row / rows) * memory.later);
    const start = frameIndex(graph, graph.op("Add", [memoryLength, blockLength]), memory.tokens);
    const x = transform(graph, plan, {
      x: branched(graph, graph.op("Concat", parts, { axis: 1 }), branches),
      count,
      angles: angles(graph, plan, [...framePositions(memory.later, memory.tokens), 0, ...spread], start),
      condition,
      past: (layer) => present(past[layer], "what a layer remembers"),
      scores: graph.op(
        "Concat",
        [
          lengthScores(graph, memoryLength, plan.window, count),
          lengthScores(graph, blockLength, plan.block, count),
          graph.floats("scores.own", [1, 1, count, count], new Float32Array(count * count)),
        ],
        { axis: 3 },
      ),
      text: (layer) => present(texts[layer], "the text of a layer"),
      textMask,
    });
    const [scale, shift] = graph.within("final", () => modulation(graph, condition, size, FINAL_PARTS));
    const normed = graph.op("Add", [rmsScale(graph, x, scale), shift]);
    const [frames, , done] = graph.split(normed, 1, [video, 1, rows]);
    return [
      velocityOut(graph, "action_out", present(done, "rows"), { from: size.width, to: actionWidth, flow: facts.flow }),
      velocityOut(graph, "latent_out", present(frames, "frames"), {
        from: size.width,
        to: size.channels,
        flow: facts.flow,
      }),
    ] as const;
  });
  graph.output(velocity, { name: "v_t", dtype: "f32", shape: [branches, rows, actionWidth] }, "velocity");
  const videoShape = [branches, video, size.channels];
  graph.output(videoVelocity, { name: "w_t", dtype: "f32", shape: videoShape }, "video_velocity");
  return graph;
}
