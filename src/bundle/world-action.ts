/**
 * Family world-action: one causal transformer over what was seen and what is to be done (DreamZero and its like). Observed
 * latent frames become keys and values of an episode's memory; the denoise graph predicts the next latent frames and the
 * action rows together, and only the rows are used.
 *
 * Three graphs: prefill reads a first observation, extend a later one on top of the memory, denoise is one flow step. With
 * guidance everything that depends on the text has two rows, with and without the instruction.
 */
import { present } from "../std/assert.ts";
import type { Facts, WorldArchitecture } from "./architecture.ts";
import { BLOCK_PARTS, FINAL_PARTS, modulation, timeCondition } from "./expert.ts";
import { type Built, type Graphs, openPort, written } from "./family.ts";
import { GraphBuilder, type Port, type Value } from "./graph.ts";
import { embedTokens } from "./language.ts";
import {
  attend,
  gatedMlp,
  linear,
  MASKED,
  maskScores,
  rmsNorm,
  rmsScale,
  rotate,
  rotation,
  SHARP_ATTENTION,
  splitHeads,
  tiedOut,
} from "./layers.ts";
import { Weights } from "./weights.ts";

/** Shortest wavelength of the time embedding. Its shifted times have no short form, and float32 tells such apart no finer. */
const PERIOD_MIN = 4e-2;
/** What is heard of the state beside the rows. */
const STATE_GAIN = 1.5;

/** All graphs with random weights; `vocabulary` is the number of token ids. */
export function worldAction(facts: Facts, architecture: WorldArchitecture, vocabulary: number): Graphs {
  const plan = layOut(facts, architecture, vocabulary);
  const weights = new Weights(architecture.seed);
  return written({
    prefill: buildReader(plan, "prefill", weights),
    extend: buildReader(plan, "extend", weights),
    denoise: buildDenoise(plan, weights),
  });
}

/** The first rule that does not hold, of what was found at a JSON path of model.json and what was expected. */
export function worldActionMismatch(facts: Facts, { transformer: size }: WorldArchitecture): string | undefined {
  const { image, frames, memory, cameras } = facts;
  if (memory === null) return "/memory: found null, expected the window of an episode";
  const patches = (image.width / size.patch) * (image.height / size.patch);
  const rules: [holds: boolean, path: string, found: number, expected: string][] = [
    [image.width % size.patch === 0, "/image/width", image.width, `a multiple of the patch, ${size.patch}`],
    [image.height % size.patch === 0, "/image/height", image.height, `a multiple of the patch, ${size.patch}`],
    [image.tokens === patches, "/image/tokens", image.tokens, `${patches}, the patches of one image`],
    [
      memory.tokens === cameras.length * patches,
      "/memory/tokens",
      memory.tokens,
      `${cameras.length * patches}, the patches of all cameras`,
    ],
    [
      memory.first === frames.first,
      "/memory/first",
      memory.first,
      `${frames.first}, a latent frame for each first frame`,
    ],
    [frames.later % memory.later === 0, "/frames/later", frames.later, `a multiple of ${memory.later} latent frames`],
    [size.head_dim % 2 === 0, "/architecture/transformer/head_dim", size.head_dim, "an even number"],
    [
      size.time_width % 2 === 0 && size.time_width > 2,
      "/architecture/transformer/time_width",
      size.time_width,
      "an even number above 2",
    ],
  ];
  const broken = rules.find(([holds]) => !holds);
  return broken && `${broken[1]}: found ${broken[2]}, expected ${broken[3]}`;
}

type Size = WorldArchitecture["transformer"];

interface Plan {
  readonly about: string;
  readonly facts: Facts;
  readonly memory: NonNullable<Facts["memory"]>;
  readonly size: Size;
  readonly vocabulary: number;
  /** 2 with guidance, else 1. */
  readonly branches: number;
  /** Camera frames that one latent frame covers; a first one covers its only frame that many times. */
  readonly covered: number;
  /** Tokens of the longest block, and of the window. */
  readonly block: number;
  readonly window: number;
  readonly blocks: readonly KeyValue<Port>[];
  readonly context: Port;
  readonly contextMask: Port;
  readonly memoryLength: Port;
}

interface KeyValue<T> {
  readonly k: T;
  readonly v: T;
}

function layOut(facts: Facts, { transformer: size }: WorldArchitecture, vocabulary: number): Plan {
  const memory = present(facts.memory, "the memory of a world-action model");
  const branches = facts.guidance === null ? 1 : 2;
  const block = Math.max(memory.first, memory.later) * memory.tokens;
  const port = (name: string): Port => ({ name, dtype: "f32", shape: [branches, size.heads, block, size.head_dim] });
  const text = facts.prompt.tokens_max;
  return {
    about: `${facts.id}: ${facts.reference ? "REFERENCE BUNDLE, random weights, never for a real arm" : facts.source}`,
    facts,
    memory,
    size,
    vocabulary,
    branches,
    covered: facts.frames.later / memory.later,
    block,
    window: memory.window * memory.tokens,
    blocks: Array.from({ length: size.layers }, (_, layer) => ({
      k: port(`block_k_${layer}`),
      v: port(`block_v_${layer}`),
    })),
    context: { name: "context", dtype: "f32", shape: [branches, text, size.width] },
    contextMask: { name: "context_mask", dtype: "bool", shape: [branches, text] },
    memoryLength: { name: "memory_length", dtype: "i64", shape: [1] },
  };
}

/** The port of all that was committed of a block. */
function memoryPort(plan: Plan, { name, shape }: Port): Port {
  const [branches = 1, heads = 1, , width = 1] = shape;
  return { name: name.replace("block", "memory"), dtype: "f32", shape: [branches, heads, plan.window, width] };
}

/** images, tokens, token_mask and, to extend, the memory → the block of the observed frames, and the text for the flow. */
function buildReader(plan: Plan, name: "prefill" | "extend", weights: Weights): Built {
  const { facts, memory, size, branches } = plan;
  const later = name === "extend";
  const graph = new GraphBuilder(name, plan.about, weights);
  const perCamera = later ? facts.frames.later : facts.frames.first;
  const latents = later ? memory.later : memory.first;
  const { width: columns, height: lines } = facts.image;
  const text: Port["shape"] = [branches, facts.prompt.tokens_max];
  const images: Port = {
    name: "images",
    dtype: "f32",
    shape: [1, facts.cameras.length * perCamera, 3, lines, columns],
  };
  const tokens: Port = { name: "tokens", dtype: "i64", shape: text };
  const tokenMask: Port = { name: "token_mask", dtype: "bool", shape: text };
  const memories = later ? plan.blocks.map(({ k, v }) => ({ k: memoryPort(plan, k), v: memoryPort(plan, v) })) : [];
  const given = {
    images: graph.input(images),
    tokens: graph.input(tokens),
    tokenMask: graph.input(tokenMask),
    memoryLength: later ? graph.input(plan.memoryLength) : undefined,
    memories: memories.map(({ k, v }) => ({ k: graph.input(k), v: graph.input(v) })),
  };
  const context = embedTokens(graph, given.tokens, plan.vocabulary, size.width);
  const count = latents * memory.tokens;
  const block = graph.within("world", () => {
    const seen = latentTokens(graph, plan, encode(graph, plan, given.images, perCamera, latents), latents);
    const scores = graph.op(
      "Concat",
      [
        ...(given.memoryLength ? [lengthScores(graph, given.memoryLength, plan.window, count)] : []),
        causalScores(graph, latents, memory.tokens),
      ],
      { axis: 3 },
    );
    const start = given.memoryLength && frameIndex(graph, given.memoryLength, memory.tokens);
    const made: KeyValue<Value>[] = [];
    transform(graph, plan, {
      x: branched(graph, seen, branches),
      count,
      angles: angles(graph, plan, framePositions(latents, memory.tokens), start),
      // What was seen is clean: the time of the flow's end.
      condition: timeCondition(
        graph,
        graph.floats("time.clean", [1], Float32Array.of(facts.flow.t_end)),
        size.time_width,
        PERIOD_MIN,
      ),
      past: (layer) => given.memories.slice(layer, layer + 1),
      scores,
      context,
      contextMask: given.tokenMask,
      keep: (kept) => made.push(kept),
    });
    return made;
  });
  graph.output(graph.op("Identity", [context]), plan.context);
  graph.output(graph.op("Identity", [given.tokenMask]), plan.contextMask);
  plan.blocks.forEach(({ k, v }, layer) => {
    const own = present(block[layer], "keys and values of a layer");
    graph.output(padded(graph, own.k, plan.block - count), k);
    graph.output(padded(graph, own.v, plan.block - count), v);
  });
  return {
    bytes: graph.bytes(),
    description: {
      file: `${name}.onnx`,
      inputs: [
        { ...openPort(images), role: "images" },
        { ...openPort(tokens), role: "tokens" },
        { ...openPort(tokenMask), role: "token_mask" },
        ...(later ? memoryInputs(plan) : []),
      ],
      outputs: [
        ...[plan.context, plan.contextMask].map((port) => ({ ...openPort(port), role: "cache" as const })),
        ...blockPorts(plan).map((port) => ({ ...openPort(port), role: "block" as const })),
      ],
    },
  };
}

/** Noisy rows, noisy latent frames, time, state, memory and block → both velocities: one flow step. */
function buildDenoise(plan: Plan, weights: Weights): Built {
  const { facts, memory, size, branches } = plan;
  const { rows, width: actionWidth } = facts.action;
  const graph = new GraphBuilder("denoise", plan.about, weights);
  const video = memory.later * memory.tokens;
  const ports = {
    latent: { name: "x_t", dtype: "f32", shape: [1, rows, actionWidth] },
    videoLatent: { name: "z_t", dtype: "f32", shape: [1, video, size.channels] },
    time: { name: "t", dtype: "f32", shape: [1] },
    state: { name: "state", dtype: "f32", shape: [1, facts.state.width] },
    blockLength: { name: "block_length", dtype: "i64", shape: [1] },
    velocity: { name: "v_t", dtype: "f32", shape: [branches, rows, actionWidth] },
    videoVelocity: { name: "w_t", dtype: "f32", shape: [branches, video, size.channels] },
  } as const satisfies Record<string, Port>;
  const latent = graph.input(ports.latent);
  const videoLatent = graph.input(ports.videoLatent);
  const time = graph.input(ports.time);
  const state = graph.input(ports.state);
  const context = graph.input(plan.context);
  const contextMask = graph.input(plan.contextMask);
  const memoryLength = graph.input(plan.memoryLength);
  const blockLength = graph.input(ports.blockLength);
  const past = plan.blocks.map(({ k, v }) => [
    { k: graph.input(memoryPort(plan, k)), v: graph.input(memoryPort(plan, v)) },
    { k: graph.input(k), v: graph.input(v) },
  ]);
  const count = video + 1 + rows;
  const towards = facts.flow.t_end > facts.flow.t_start ? 1 : -1;
  const [velocity, videoVelocity] = graph.within("world", () => {
    const told = linear(graph, "state_in", state, {
      from: facts.state.width,
      to: size.width,
      bias: true,
      gain: STATE_GAIN,
    });
    const acting = linear(graph, "action_in", latent, { from: actionWidth, to: size.width, bias: true });
    const placed = graph.op("Add", [acting, graph.weight("rows", [rows, size.width], { fanIn: 1, gain: 0.5 })]);
    const parts = [
      latentTokens(graph, plan, videoLatent, memory.later),
      graph.op("Unsqueeze", [told, graph.ints([1])]),
      placed,
    ];
    const condition = timeCondition(graph, time, size.time_width, PERIOD_MIN);
    // Rows are spread over the frames that are to come.
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
      context,
      contextMask,
    });
    const [scale, shift] = graph.within("final", () => modulation(graph, condition, size, FINAL_PARTS));
    const normed = graph.op("Add", [rmsScale(graph, x, scale), shift]);
    const [seen, , done] = graph.split(normed, 1, [video, 1, rows]);
    return [
      tiedOut(graph, "action", present(done, "rows"), { hidden: size.width, width: actionWidth, towards }),
      tiedOut(graph, "latent", present(seen, "frames"), { hidden: size.width, width: size.channels, towards }),
    ];
  });
  graph.output(present(velocity, "a velocity"), ports.velocity);
  graph.output(present(videoVelocity, "a velocity"), ports.videoVelocity);
  return {
    bytes: graph.bytes(),
    description: {
      file: "denoise.onnx",
      inputs: [
        { ...openPort(ports.latent), role: "latent" },
        { ...openPort(ports.videoLatent), role: "video_latent" },
        { ...openPort(ports.time), role: "time" },
        { ...openPort(ports.state), role: "state" },
        ...[plan.context, plan.contextMask].map((port) => ({
          ...openPort(port),
          role: "cache" as const,
          from: port.name,
        })),
        ...memoryInputs(plan),
        { ...openPort(ports.blockLength), role: "block_length" },
        ...blockPorts(plan).map((port) => ({ ...openPort(port), role: "block" as const, from: port.name })),
      ],
      outputs: [
        { ...openPort(ports.velocity), role: "velocity" },
        { ...openPort(ports.videoVelocity), role: "video_velocity" },
      ],
    },
  };
}

function blockPorts(plan: Plan): Port[] {
  return plan.blocks.flatMap(({ k, v }) => [k, v]);
}

function memoryInputs(plan: Plan) {
  return [
    { ...openPort(plan.memoryLength), role: "memory_length" as const },
    ...blockPorts(plan).map((port) => ({
      ...openPort(memoryPort(plan, port)),
      role: "memory" as const,
      from: port.name,
    })),
  ];
}

/** Images [1, cameras · frames, 3, h, w] → latent frames [1, latents · cameras · patches, channels], frame by frame. */
function encode(graph: GraphBuilder, plan: Plan, images: Value, perCamera: number, latents: number): Value {
  const { facts, size, covered } = plan;
  const { width: columns, height: lines, tokens: patches } = facts.image;
  const cameras = facts.cameras.length;
  // A first frame stands for all the frames that its latent frame would cover.
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

/** Latent frames [1, N, channels] → tokens [1, N, width], each with what is learned of its place in the frame. */
function latentTokens(graph: GraphBuilder, plan: Plan, latent: Value, latents: number): Value {
  const { size, memory } = plan;
  const x = linear(graph, "latent_in", latent, { from: size.channels, to: size.width, bias: true });
  const places = graph.weight("places", [memory.tokens, size.width], { fanIn: 1, gain: 0.5 });
  const all = latents === 1 ? places : graph.op("Concat", Array(latents).fill(places), { axis: 0 });
  return graph.op("Add", [x, all]);
}

interface Pass {
  /** [R, count, width]. */
  readonly x: Value;
  readonly count: number;
  readonly angles: ReturnType<typeof rotation>;
  readonly condition: Value;
  /** Keys and values that a layer reads beside its own, [R, heads, M, D] each. */
  readonly past: (layer: number) => readonly KeyValue<Value>[];
  /** [1, 1, count, all keys]. */
  readonly scores: Value;
  /** [R, T, width] and [R, T]. */
  readonly context: Value;
  readonly contextMask: Value;
  /** Takes each layer's own keys and values; then nothing else is wanted of the last layer. */
  readonly keep?: (own: KeyValue<Value>) => void;
}

/** All blocks: attention over past and present, attention to the text, gated MLP; scaled, shifted and gated by the time. */
function transform(graph: GraphBuilder, plan: Plan, pass: Pass): Value {
  const { size } = plan;
  const { width, heads, head_dim: headDim, layers } = size;
  const all = { heads, kvHeads: heads, headDim };
  const inner = heads * headDim;
  const project = (name: string, x: Value, gain = SHARP_ATTENTION) =>
    splitHeads(graph, linear(graph, name, x, { from: width, to: inner, gain }), heads, headDim);
  const textScores = maskScores(graph, pass.contextMask);
  let x = pass.x;
  for (let layer = 0; layer < layers; layer += 1) {
    x = graph.within(`blocks.${layer}`, () => {
      const [scale1, shift1, gate1, scale2, shift2, gate2] = modulation(graph, pass.condition, size, BLOCK_PARTS);
      const normed = graph.op("Add", [rmsScale(graph, x, scale1), shift1]);
      const own = { k: rotate(graph, project("key", normed), pass.angles), v: project("value", normed, 1) };
      pass.keep?.(own);
      if (pass.keep && layer === layers - 1) return x;
      const seen = [...pass.past(layer), own];
      const joined = (part: "k" | "v") => {
        const values = seen.map((one) => one[part]);
        return values.length === 1 ? own[part] : graph.op("Concat", values, { axis: 2 });
      };
      const q = rotate(graph, project("query", normed), pass.angles);
      const mixed = attend(graph, { q, k: joined("k"), v: joined("v"), scores: pass.scores }, all, pass.count);
      const attended = graph.op("Mul", [linear(graph, "output", mixed, { from: inner, to: width }), gate1]);
      const middle = graph.op("Add", [x, attended]);
      const told = graph.within("text", () => {
        const asking = project("query", rmsNorm(graph, "norm", middle, width));
        const k = project("key", pass.context);
        const v = project("value", pass.context, 1);
        const read = attend(graph, { q: asking, k, v, scores: textScores }, all, pass.count);
        return graph.op("Add", [middle, linear(graph, "output", read, { from: inner, to: width })]);
      });
      const fed = graph.op("Add", [rmsScale(graph, told, scale2), shift2]);
      return graph.op("Add", [told, graph.op("Mul", [gatedMlp(graph, fed, width, size.mlp), gate2])]);
    });
  }
  return x;
}

/** [1, N, W] → [branches, N, W]. */
function branched(graph: GraphBuilder, x: Value, branches: number): Value {
  return branches === 1 ? x : graph.op("Concat", Array(branches).fill(x), { axis: 0 });
}

/** Zeros behind the tokens of [R, heads, N, D]. */
function padded(graph: GraphBuilder, x: Value, tokens: number): Value {
  if (tokens === 0) return graph.op("Identity", [x]);
  return graph.op("Pad", [x, graph.ints([0, 0, 0, 0, 0, 0, tokens, 0]), graph.scalar(0)]);
}

/** Scores [1, 1, count, size] that hide all but the first `length` i64 [1] of `size` keys. */
function lengthScores(graph: GraphBuilder, length: Value, size: number, count: number): Value {
  const indices = graph.ints(Array.from({ length: size }, (_, index) => index));
  const scores = graph.op("Where", [graph.op("Less", [indices, length]), graph.scalar(0), graph.scalar(MASKED)]);
  return graph.op("Expand", [graph.reshape(scores, [1, 1, 1, size]), graph.ints([1, 1, count, size])]);
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

/** Index of each token's frame. */
function framePositions(latents: number, tokens: number): number[] {
  return Array.from({ length: latents * tokens }, (_, token) => Math.floor(token / tokens));
}

/** Tokens i64 [1] as a number of frames, f32 [1]. */
function frameIndex(graph: GraphBuilder, length: Value, tokens: number): Value {
  return graph.op("Mul", [graph.cast(length, "f32"), graph.scalar(1 / tokens)]);
}

/** Angles of the tokens, `offsets` frames from the frame `start` f32 [1], or from frame 0; a row for each branch. */
function angles(graph: GraphBuilder, plan: Plan, offsets: readonly number[], start: Value | undefined) {
  const own = graph.floats("positions", [1, offsets.length, 1], Float32Array.from(offsets));
  const positions = start === undefined ? own : graph.op("Add", [own, start]);
  return rotation(graph, branched(graph, positions, plan.branches), plan.size.head_dim);
}
