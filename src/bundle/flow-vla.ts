/**
 * Family flow-vla: a vision tower, a language prefix that includes the state, and a flow expert on the prefix's keys and values
 * (pi0.5, MolmoAct2 and their like). Two graphs: prefill once per observation, denoise once per flow step.
 */
import { present } from "../std/assert.ts";
import type { Architecture, Facts } from "./architecture.ts";
import { expert } from "./expert.ts";
import { type Built, type Graphs, openPort, written } from "./family.ts";
import { firstBroken } from "./fault.ts";
import { GraphBuilder, type Port, type Value } from "./graph.ts";
import { embedTokens, language } from "./language.ts";
import { patchCount, type Views, vision } from "./vision.ts";
import { Weights } from "./weights.ts";

/** Both graphs with random weights; `vocabulary` is the number of token ids. */
export function flowVla(facts: Facts, architecture: Architecture, vocabulary: number): Graphs {
  const weights = new Weights(architecture.seed);
  const plan = layOut(facts, architecture);
  const prefill = buildPrefill(plan, architecture, vocabulary, weights);
  const denoise = buildDenoise(plan, architecture, weights);
  return written({ prefill, denoise });
}

/** The first rule that is broken: a JSON path of model.json, what was found there and what was expected. */
export function flowVlaMismatch(
  { image, frames, memory, guidance }: Facts,
  { vision: tower, language: prefix, expert: flow }: Architecture,
): string | undefined {
  const patches = (image.width / tower.patch) * (image.height / tower.patch);
  return firstBroken([
    [frames.first === frames.later, "/frames/first", frames.first, `${frames.later}, as later`],
    [memory === null, "/memory", 1, "null: this family keeps none"],
    [guidance === null, "/guidance", 1, "null: this family has one branch"],
    [image.width % tower.patch === 0, "/image/width", image.width, `a multiple of the patch, ${tower.patch}`],
    [image.height % tower.patch === 0, "/image/height", image.height, `a multiple of the patch, ${tower.patch}`],
    [image.tokens === patches, "/image/tokens", image.tokens, `${patches}, the patches of one image`],
    [tower.width % tower.heads === 0, "/architecture/vision/heads", tower.heads, `a divisor of ${tower.width}`],
    [
      prefix.heads % prefix.kv_heads === 0,
      "/architecture/language/kv_heads",
      prefix.kv_heads,
      `a divisor of ${prefix.heads}`,
    ],
    [prefix.head_dim % 2 === 0, "/architecture/language/head_dim", prefix.head_dim, "an even number"],
    [
      flow.time_width % 2 === 0 && flow.time_width > 2,
      "/architecture/expert/time_width",
      flow.time_width,
      "an even number above 2",
    ],
  ]);
}

interface Plan {
  readonly about: string;
  readonly views: Views;
  readonly images: Port;
  readonly tokens: Port;
  readonly tokenMask: Port;
  readonly prefixMask: Port;
  readonly caches: readonly { readonly k: Port; readonly v: Port }[];
  readonly latent: Port;
  readonly time: Port;
  /** The flow expert reads the state if the prompt does not contain it. */
  readonly state: Port | undefined;
  readonly velocity: Port;
  /** Tokens of one image, of the prompt, of both. */
  readonly patches: number;
  readonly prefix: number;
  readonly rows: number;
  readonly actionWidth: number;
  /** Sign of the flow's time: +1 when it runs up. */
  readonly towards: 1 | -1;
}

/** Names, dtypes and shapes of every port of both graphs. */
function layOut(facts: Facts, architecture: Architecture): Plan {
  const { image, prompt, action } = facts;
  const { kv_heads: kvHeads, head_dim: headDim, layers } = architecture.language;
  const views = { count: facts.cameras.length * facts.frames.later, width: image.width, height: image.height };
  const patches = patchCount(views, architecture.vision.patch);
  const prefix = views.count * patches + prompt.tokens_max;
  const cache = (name: string): Port => ({ name, dtype: "f32", shape: ["batch", kvHeads, prefix, headDim] });
  const rows: Port["shape"] = ["batch", action.rows, action.width];
  return {
    about: `${facts.id}: ${facts.reference ? "REFERENCE BUNDLE, random weights, never for a real arm" : facts.source}`,
    views,
    images: { name: "images", dtype: "f32", shape: ["batch", views.count, 3, image.height, image.width] },
    tokens: { name: "tokens", dtype: "i64", shape: ["batch", prompt.tokens_max] },
    tokenMask: { name: "token_mask", dtype: "bool", shape: ["batch", prompt.tokens_max] },
    prefixMask: { name: "prefix_mask", dtype: "bool", shape: ["batch", prefix] },
    caches: Array.from({ length: layers }, (_, layer) => ({
      k: cache(`past_k_${layer}`),
      v: cache(`past_v_${layer}`),
    })),
    latent: { name: "x_t", dtype: "f32", shape: rows },
    time: { name: "t", dtype: "f32", shape: [1] },
    state: prompt.parts.some(({ kind }) => kind === "state_tokens" || kind === "template")
      ? undefined
      : { name: "state", dtype: "f32", shape: ["batch", facts.state.width] },
    velocity: { name: "v_t", dtype: "f32", shape: rows },
    patches,
    prefix,
    rows: action.rows,
    actionWidth: action.width,
    towards: facts.flow.t_end > facts.flow.t_start ? 1 : -1,
  };
}

/** images, tokens, token_mask → prefix_mask, past_k_i, past_v_i. Prefix: image tokens view by view, then the prompt. */
function buildPrefill(plan: Plan, architecture: Architecture, vocabulary: number, weights: Weights): Built {
  const graph = new GraphBuilder("prefill", plan.about, weights);
  const images = graph.input(plan.images);
  const tokens = graph.input(plan.tokens);
  const tokenMask = graph.input(plan.tokenMask);

  const seen = vision(graph, images, plan.views, architecture);
  const read = embedTokens(graph, tokens, vocabulary, architecture.language.width);
  const embedded = graph.op("Concat", [seen, read], { axis: 1 });
  // Image tokens are always valid and come first: ones are added on the left of the mask.
  const counted = graph.cast(tokenMask, "f32");
  const ones = graph.op("Pad", [counted, graph.ints([0, plan.views.count * plan.patches, 0, 0]), graph.scalar(1)]);
  const valid = graph.cast(ones, "bool");
  const caches = language(graph, embedded, valid, plan.prefix, architecture);

  graph.output(valid, plan.prefixMask);
  plan.caches.forEach(({ k, v }, layer) => {
    const cache = present(caches[layer], "cache of a layer");
    graph.output(cache.k, k);
    graph.output(cache.v, v);
  });
  return {
    bytes: graph.bytes(),
    description: {
      file: "prefill.onnx",
      inputs: [
        { ...openPort(plan.images), role: "images" },
        { ...openPort(plan.tokens), role: "tokens" },
        { ...openPort(plan.tokenMask), role: "token_mask" },
      ],
      outputs: cachePorts(plan).map((port) => ({ ...openPort(port), role: "cache" })),
    },
  };
}

/** x_t, t and the prefix cache → v_t: one flow step. */
function buildDenoise(plan: Plan, architecture: Architecture, weights: Weights): Built {
  const graph = new GraphBuilder("denoise", plan.about, weights);
  const latent = graph.input(plan.latent);
  const time = graph.input(plan.time);
  const prefixMask = graph.input(plan.prefixMask);
  const caches = plan.caches.map(({ k, v }) => ({ k: graph.input(k), v: graph.input(v) }));

  const state = plan.state && { value: graph.input(plan.state), width: Number(plan.state.shape[1]) };
  const { rows, actionWidth, towards } = plan;
  const flow = { latent, time, state, prefixMask, caches, rows, actionWidth, towards };
  const velocity: Value = expert(graph, flow, architecture);
  graph.output(velocity, plan.velocity);
  return {
    bytes: graph.bytes(),
    description: {
      file: "denoise.onnx",
      inputs: [
        { ...openPort(plan.latent), role: "latent" },
        { ...openPort(plan.time), role: "time" },
        ...(plan.state ? [{ ...openPort(plan.state), role: "state" as const }] : []),
        ...cachePorts(plan).map((port) => ({ ...openPort(port), role: "cache" as const, from: port.name })),
      ],
      outputs: [{ ...openPort(plan.velocity), role: "velocity" }],
    },
  };
}

function cachePorts(plan: Plan): Port[] {
  return [plan.prefixMask, ...plan.caches.flatMap(({ k, v }) => [k, v])];
}
