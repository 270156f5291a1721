/** How the graphs of a flow-vla are given prompt, pictures and time, in each of the ways that `FlowInputs` names. */
import type { Architecture, Facts } from "./architecture.ts";
import type { GraphBuilder, Port, Value } from "./graph.ts";
import { imageInput } from "./image-input.ts";

/** The prefix, image tokens view by view, then the prompt, then the state where the prefix has it. */
export interface Prefix {
  /** Its views: the policy's, or the model's cameras. */
  readonly views: readonly string[];
  /** Tokens of all images, and of the longest prefix. */
  readonly seen: number;
  readonly most: number;
  /** Sizes of the prompt and of the prefix: words with buckets. */
  readonly text: Port["shape"][number];
  readonly length: Port["shape"][number];
}

export function prefixOf({ cameras, frames, image, prompt }: Facts, { inputs }: Architecture): Prefix {
  const views = inputs?.views ?? cameras;
  const seen = views.length * frames.later * image.tokens;
  const most = seen + prompt.tokens_max + (inputs?.state === "prefix" ? 1 : 0);
  const [text, length] = prompt.buckets ? (["prompt", "prefix"] as const) : [prompt.tokens_max, most];
  return { views, seen, most, text, length };
}

/**
 * What prefill reads: images f32 [B, views · frames, 3, h, w], tokens [B, T], the state f32 [B, width] where the prefix has it. `valid` makes
 * the mask of the prefix, bool [B, P]. `blocks` makes those of its tokens, f32 [B, P], where not all see each other.
 */
export function readInputs(graph: GraphBuilder, facts: Facts, prefix: Prefix, { inputs }: Architecture) {
  const views = inputs?.views;
  const images = views === undefined ? allViews(graph, facts) : eachView(graph, facts, views);
  const masks = views?.map((name) =>
    graph.input({ name: `mask_${name}`, dtype: "bool", shape: ["batch"] }, "image_mask", { cameras: [name] }),
  );
  const tokens = graph.input({ name: "tokens", dtype: "i64", shape: ["batch", prefix.text] }, "tokens");
  const tokenMask = graph.input({ name: "token_mask", dtype: "bool", shape: ["batch", prefix.text] }, "token_mask");
  const state =
    inputs?.state === "prefix"
      ? graph.input({ name: "state", dtype: "f32", shape: ["batch", facts.state.width] }, "state")
      : undefined;
  const blocks = () => {
    if (state === undefined) return undefined;
    const none = graph.op("Mul", [graph.cast(tokenMask, "f32"), graph.scalar(0)]);
    const before = graph.op("Pad", [none, graph.ints([0, prefix.seen, 0, 0]), graph.scalar(0)]);
    return graph.op("Pad", [before, graph.ints([0, 0, 0, 1]), graph.scalar(1)]);
  };
  const valid = () => {
    const counted = graph.cast(tokenMask, "f32");
    // Image tokens come first: their mask is added on the left of the prompt's.
    const all =
      masks === undefined
        ? graph.op("Pad", [counted, graph.ints([0, prefix.seen, 0, 0]), graph.scalar(1)])
        : graph.op("Concat", [ofViews(graph, facts, masks), counted], { axis: 1 });
    const whole = state === undefined ? all : graph.op("Pad", [all, graph.ints([0, 0, 0, 1]), graph.scalar(1)]);
    return graph.cast(whole, "bool");
  };
  return { images, tokens, state, valid, blocks };
}

/** One tensor for all cameras. */
function allViews(graph: GraphBuilder, { cameras, frames, image }: Facts): Value {
  const { width, height } = image;
  return imageInput(graph, { name: "images", lead: ["batch", cameras.length * frames.later], width, height }, image);
}

/** One tensor for each view, joined. */
function eachView(graph: GraphBuilder, { frames, image }: Facts, views: readonly string[]): Value {
  const { width, height } = image;
  const each = views.map((name) =>
    imageInput(graph, { name: `image_${name}`, lead: ["batch", frames.later], width, height, cameras: [name] }, image),
  );
  return each.length === 1 ? (each[0] ?? "") : graph.op("Concat", each, { axis: 1 });
}

/** Masks bool [B] of the views → f32 [B, image tokens]. */
function ofViews(graph: GraphBuilder, { frames, image }: Facts, masks: readonly Value[]): Value {
  const tokens = frames.later * image.tokens;
  const ones = graph.floats("view.ones", [1, tokens], new Float32Array(tokens).fill(1));
  const each = masks.map((mask) =>
    graph.op("Mul", [graph.op("Unsqueeze", [graph.cast(mask, "f32"), graph.ints([1])]), ones]),
  );
  return graph.op("Concat", each, { axis: 1 });
}

/** The time of a step f32 [1], or of each row f32 [B, rows] where a chunk may continue rows. */
export function timeInput(graph: GraphBuilder, { action }: Facts, { inputs }: Architecture): Value {
  const buckets = inputs?.time_buckets;
  const shape: Port["shape"] = action.prefix === undefined ? [1] : ["batch", action.rows];
  if (buckets === undefined) return graph.input({ name: "t", dtype: "f32", shape }, "time");
  const told = graph.input({ name: "timesteps", dtype: "i64", shape }, "time", { buckets });
  return graph.op("Div", [graph.cast(told, "f32"), graph.scalar(buckets)]);
}
