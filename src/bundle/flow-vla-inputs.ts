/** How the graphs of a flow-vla are given prompt, pictures, positions and time, in each of the ways that `FlowInputs` names. */
import type { Architecture, Facts, FlowInputs } from "./architecture.ts";
import type { GraphBuilder, Port, Value } from "./graph.ts";
import { imageInput } from "./image-input.ts";
import { groups, imageTokens } from "./pictures.ts";

/** The prefix, image tokens view by view, then the prompt. */
export interface Prefix {
  /** Its views: the policy's, or the model's cameras. */
  readonly views: readonly string[];
  /** Tokens of all images, and of images and the longest prompt. */
  readonly seen: number;
  readonly most: number;
  /** Sizes of the prompt and of the prefix: words with buckets. */
  readonly text: Port["shape"][number];
  readonly length: Port["shape"][number];
}

export function prefixOf(facts: Facts, { inputs }: Architecture): Prefix {
  const { cameras, frames, prompt } = facts;
  const views = inputs?.views ?? cameras;
  const seen = frames.later * imageTokens(facts, views);
  const most = seen + prompt.tokens_max;
  const [text, length] = prompt.buckets ? (["prompt", "prefix"] as const) : [prompt.tokens_max, most];
  return { views, seen, most, text, length };
}

/**
 * What prefill reads: images f32 [B, views · frames, 3, h, w] of each group of views, tokens [B, T], positions i64 [B, P] if they are given, and what makes the mask
 * of the prefix, bool [B, P].
 */
export function readInputs(graph: GraphBuilder, facts: Facts, prefix: Prefix, { inputs = {} }: Architecture) {
  const { integers = "i64", mask, views } = inputs;
  const images = views === undefined ? sizedInputs(graph, facts) : viewInputs(graph, facts, views);
  const masks = views?.map((name) =>
    graph.input({ name: `mask_${name}`, dtype: "bool", shape: ["batch"] }, "image_mask", { cameras: [name] }),
  );
  const tokens = graph.input({ name: "tokens", dtype: integers, shape: ["batch", prefix.text] }, "tokens");
  const tokenMask =
    mask === undefined
      ? graph.input({ name: "token_mask", dtype: "bool", shape: ["batch", prefix.text] }, "token_mask")
      : undefined;
  const positions = inputs.position_ids && positionInput(graph, inputs, prefix.length);
  const valid = () => {
    if (tokenMask === undefined) return toldMask(graph, prefix, inputs);
    const counted = graph.cast(tokenMask, "f32");
    // Image tokens come first: their mask is added on the left of the prompt's.
    const all =
      masks === undefined
        ? graph.op("Pad", [counted, graph.ints([0, prefix.seen, 0, 0]), graph.scalar(1)])
        : graph.op("Concat", [ofViews(graph, facts, prefix.views, masks), counted], { axis: 1 });
    return graph.cast(all, "bool");
  };
  return { images, tokens, positions, valid };
}

/** One tensor for neighbours of one size. */
function sizedInputs(graph: GraphBuilder, facts: Facts): Value[] {
  const sizes = groups(facts);
  return sizes.map(({ cameras, picture: { width, height } }) => {
    const size = { lead: ["batch", cameras.length * facts.frames.later], width, height } as const;
    return sizes.length === 1
      ? imageInput(graph, { name: "images", ...size }, facts.image)
      : imageInput(graph, { name: `images_${cameras.join("_")}`, ...size, cameras }, facts.image);
  });
}

/** One tensor for each view, joined with neighbours of one size. */
function viewInputs(graph: GraphBuilder, facts: Facts, views: readonly string[]): Value[] {
  return groups(facts, views).map(({ cameras, picture: { width, height } }) => {
    const size = { lead: ["batch", facts.frames.later], width, height } as const;
    const each = cameras.map((name) =>
      imageInput(graph, { name: `image_${name}`, ...size, cameras: [name] }, facts.image),
    );
    return each.length === 1 ? (each[0] ?? "") : graph.op("Concat", each, { axis: 1 });
  });
}

/** Masks bool [B] of the views → f32 [B, image tokens]. */
function ofViews(graph: GraphBuilder, facts: Facts, views: readonly string[], masks: readonly Value[]): Value {
  const ones = new Map<number, Value>();
  const each = masks.map((mask, index) => {
    const tokens = facts.frames.later * imageTokens(facts, views.slice(index, index + 1));
    const row =
      ones.get(tokens) ?? graph.floats(`view.ones${ones.size || ""}`, [1, tokens], new Float32Array(tokens).fill(1));
    ones.set(tokens, row);
    return graph.op("Mul", [graph.op("Unsqueeze", [graph.cast(mask, "f32"), graph.ints([1])]), row]);
  });
  return graph.op("Concat", each, { axis: 1 });
}

/** The mask of the prefix bool [B, P], from an input of either graph. */
export function toldMask(graph: GraphBuilder, { most, length }: Prefix, { mask, integers = "i64" }: FlowInputs): Value {
  if (mask === "prefix") {
    const port: Port = { name: "attention_mask", dtype: integers, shape: ["batch", length] };
    return graph.cast(graph.input(port, "prefix_mask"), "bool");
  }
  const valid = graph.input({ name: "prefix_length", dtype: integers, shape: ["batch"] }, "prefix_length");
  const count = graph.op("Unsqueeze", [graph.cast(valid, "f32"), graph.ints([1])]);
  const places = graph.floats("prefix.places", [1, most], Float32Array.from(Array(most).keys()));
  return graph.op("Less", [places, count]);
}

/** Positions of `tokens` tokens as they are given, i64 [B, tokens]. */
export function positionInput(
  graph: GraphBuilder,
  { integers = "i64", position_ids: counts }: FlowInputs,
  tokens: Port["shape"][number],
): Value {
  const port: Port = { name: "position_ids", dtype: integers, shape: ["batch", tokens] };
  return graph.cast(graph.input(port, "position_ids", counts === "all" ? { counts } : {}), "i64");
}

/** The time of a step, and which rows the chunk continues. */
export interface TimeInput {
  /** f32 [1] or [B, rows]. */
  readonly time: Value;
  /** bool [B, rows]; undefined where the time says it, and on a model whose chunks continue none. */
  readonly held: Value | undefined;
  /** Rows differ in their time. */
  readonly each: boolean;
}

export function timeInput(graph: GraphBuilder, rows: number, inputs: FlowInputs): TimeInput {
  const { integers = "i64", time_buckets: buckets, action_prefix: how } = inputs;
  const shape: Port["shape"] = how === "time" ? ["batch", rows] : [1];
  const told =
    buckets === undefined
      ? graph.input({ name: "t", dtype: "f32", shape }, "time")
      : graph.input({ name: "timesteps", dtype: integers, shape }, "time", { buckets });
  const time = buckets === undefined ? told : graph.op("Div", [graph.cast(told, "f32"), graph.scalar(buckets)]);
  if (how === undefined || how === "time") return { time, held: undefined, each: how === "time" };
  if (how === "mask") {
    const port: Port = { name: "prefix_rows", dtype: "f32", shape: ["batch", rows] };
    return { time, held: graph.cast(graph.input(port, "action_prefix_mask"), "bool"), each: true };
  }
  const port: Port = { name: "prefix_count", dtype: integers, shape: ["batch"] };
  const count = graph.cast(graph.input(port, "action_prefix_length"), "i64");
  const places = graph.reshape(graph.ints([...Array(rows).keys()]), [1, rows]);
  return { time, held: graph.op("Less", [places, graph.op("Unsqueeze", [count, graph.ints([1])])]), each: true };
}

/** The state f32 [B, width], normalised, then zeros. */
export function stateInput(graph: GraphBuilder, { state }: Facts, { state_parts: apart }: FlowInputs): Value {
  const { columns, width } = state;
  if (!apart) return graph.input({ name: "state", dtype: "f32", shape: ["batch", width] }, "state");
  const parts = [...Map.groupBy(columns, ({ from }) => from)];
  const values = parts.map(([from, own]) => {
    const names = own.map(({ name }) => name);
    return graph.input({ name: `state_${from}`, dtype: "f32", shape: ["batch", own.length] }, "state", {
      columns: names,
    });
  });
  // As the columns stand, which may change between the arrays, and zeros behind them.
  const order = parts.flatMap(([, own]) => own);
  const places = graph.ints(columns.map((column) => order.indexOf(column)));
  const told = graph.op("Gather", [graph.op("Concat", values, { axis: 1 }), places], { axis: 1 });
  return graph.op("Pad", [told, graph.ints([0, 0, 0, width - columns.length]), graph.scalar(0)]);
}

/** The number of the robot's embodiment i64 [1], a constant of the manifest. */
export function embodimentInput(graph: GraphBuilder, { integers = "i64", embodiment }: FlowInputs): Value | undefined {
  if (embodiment === undefined) return undefined;
  const port: Port = { name: "embodiment_id", dtype: integers, shape: [1] };
  return graph.input(port, "constant", { values: [embodiment.id] });
}
