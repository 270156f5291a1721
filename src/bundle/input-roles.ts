/**
 * Where the values of a graph's input may come from. A role is a word of the manifest, its name, dtype and shape are the graph's own: a
 * model that wants another number than those below declares a `constant`. The native engine has the same table (native/src/flow/inputs.rs).
 *
 * B is "batch", 1 on a model with memory; R is B, or the number of branches on a model with memory. T are the tokens of the prompt, P
 * those of the prefix: each view's image tokens, then the prompt; with buckets they are the words "prompt" and "prefix".
 */
import type { GraphSizes } from "./graph-sizes.ts";
import type { Graph } from "./manifest.ts";

/** In the order in which the manifests of reference bundles list the inputs. */
export const INPUT_ROLES = [
  "images",
  "tokens",
  "token_mask",
  "image_mask",
  "prefix_mask",
  "prefix_length",
  "position_ids",
  "constant",
  "latent",
  "video_latent",
  "time",
  "action_prefix_mask",
  "action_prefix_length",
  "state",
  "cache",
  "memory_length",
  "memory",
  "block_length",
  "block",
] as const;
export type InputRole = (typeof INPUT_ROLES)[number];

export type GraphName = "prefill" | "extend" | "denoise";
export type Input = Graph["inputs"][number];
type Shape = Input["shape"];
type Dtype = Input["dtype"];
type Field = "values" | "buckets" | "cameras" | "counts" | "columns";

interface Rule {
  readonly graphs: readonly GraphName[];
  readonly dtypes: readonly Dtype[];
  /** The shapes that it may have; of the other roles `checkSources` and `constantFault` know them. */
  readonly shapes?: (sizes: GraphSizes, graph: GraphName, input: Input) => Shape[];
  readonly fields?: readonly Field[];
  /** Only on a model with memory, or only on one without. */
  readonly memory?: boolean;
  /** At most one in a graph. */
  readonly once?: true;
}

const READERS = ["prefill", "extend"] as const;
const ALL = ["prefill", "extend", "denoise"] as const;
const INTEGERS = ["i64", "i32"] as const;
/** 1 for true. */
const MASK = ["bool", "i64", "i32", "f32"] as const;
const NUMBERS = ["f32", "i64", "i32"] as const;
const FLOATS = ["f32", "f16", "bf16"] as const;

export const RULES: Readonly<Record<InputRole, Rule>> = {
  /**
   * f32, normalised, or u8, pixels that the graph normalises: [B, views · frames, 3, height, width], pixels with `image.layout` hwc [B, views
   * · frames, height, width, 3], or without the second where it is 1. `cameras` names the views, of one size, in several inputs
   * or one, each camera of the model once; a view of a name that the model has not is a black picture.
   */
  images: { graphs: READERS, dtypes: ["f32", "u8"], fields: ["cameras"], shapes: imageShapes },
  /** [R, T], then `pad_id`. */
  tokens: { graphs: READERS, dtypes: INTEGERS, shapes: ({ branches, text }) => [[branches, text]] },
  /** [R, T], true for a token. */
  token_mask: { graphs: ALL, dtypes: MASK, shapes: ({ branches, text }) => [[branches, text]] },
  /** [B, views], or [B] of one view: true for a view that the model has a camera for. */
  image_mask: {
    graphs: ALL,
    dtypes: MASK,
    fields: ["cameras"],
    shapes: ({ rows, views }, _, { cameras = views }) => [
      [rows, cameras.length],
      ...(cameras.length === 1 ? [[rows]] : []),
    ],
  },
  /** [R, P], true for a token, and for the image tokens of a view that the model has a camera for. */
  prefix_mask: { graphs: ALL, dtypes: MASK, memory: false, shapes: ({ branches, prefix }) => [[branches, prefix]] },
  /** [R], or [1] with a batch of 1: how many of them are true. */
  prefix_length: { graphs: ALL, dtypes: INTEGERS, memory: false, shapes: ({ branches, one }) => [[branches], ...one] },
  /**
   * Of each token the number of counted ones before it, cumsum(mask) − 1 as openpi has it: a masked one has the position of the counted one
   * before it. A reader's are of the prompt alone, [R, T], or of the prefix, [R, P]. Those of the denoise graph, [R, rows] or [R, rows + 1]
   * with a state token, go on behind the prefix; where all are counted, behind the longest one.
   */
  position_ids: { graphs: ALL, dtypes: INTEGERS, fields: ["counts"], shapes: positionShapes },
  /** `values`; any shape of numbers, the first of which may be B. */
  constant: { graphs: ALL, dtypes: MASK, fields: ["values"] },
  /** [B, rows, action.width]. */
  latent: {
    graphs: ["denoise"],
    dtypes: ["f32"],
    once: true,
    shapes: ({ rows, chunk, width }) => [[rows, chunk, width]],
  },
  /** Any fixed shape that begins with 1. */
  video_latent: {
    graphs: ["denoise"],
    dtypes: ["f32"],
    memory: true,
    once: true,
    shapes: (_, __, { shape }) => [[1, ...shape.slice(1)]],
  },
  /** [1], [], [B], or [B, rows] with a time for each row: that of the flow's end for a row that the chunk continues. */
  time: {
    graphs: ["denoise"],
    dtypes: NUMBERS,
    fields: ["buckets"],
    shapes: ({ rows, chunk }) => [[1], [], [rows], [rows, chunk]],
  },
  /** [B, rows], true for a row that the chunk continues; and [B], or [1] with a batch of 1, how many these are. */
  action_prefix_mask: { graphs: ["denoise"], dtypes: MASK, shapes: ({ rows, chunk }) => [[rows, chunk]] },
  action_prefix_length: { graphs: ["denoise"], dtypes: INTEGERS, shapes: ({ rows, one }) => [[rows], ...one] },
  /** [B, state.width], normalised, then zeros; or [B, columns] of those that are named, such as one arm's. */
  state: {
    graphs: ALL,
    dtypes: ["f32"],
    fields: ["columns"],
    shapes: ({ rows, state }, _, { columns }) => [
      [rows, columns?.length ?? state],
      [rows, 1, columns?.length ?? state],
    ],
  },
  /** The output `from` of the prefill graph, same dtype and shape. */
  cache: { graphs: ["denoise"], dtypes: [...MASK, "f16", "bf16"] },
  /** All that was committed of the blocks `from`, of their type [R, …, window · tokens, width], and how many of these tokens are valid, [1]. */
  memory: { graphs: ["extend", "denoise"], dtypes: FLOATS, memory: true },
  memory_length: { graphs: ["extend", "denoise"], dtypes: INTEGERS, memory: true, once: true, shapes: () => [[1]] },
  /** The block `from` that this run has written, and how many of its tokens are valid, [1]. Values behind a length are finite, no more. */
  block: { graphs: ["denoise"], dtypes: FLOATS, memory: true },
  block_length: { graphs: ["denoise"], dtypes: INTEGERS, memory: true, once: true, shapes: () => [[1]] },
};

/** None where its views differ in size. */
function imageShapes({ rows, cameras, frames, layout, sizeOf }: GraphSizes, graph: GraphName, input: Input): Shape[] {
  const views = input.cameras ?? cameras;
  const size = sizeOf(views);
  if (size === undefined) return [];
  const { width, height } = size;
  const count = views.length * (graph === "extend" ? frames.later : frames.first);
  const one = layout === "hwc" && input.dtype === "u8" ? [height, width, 3] : [3, height, width];
  return [[rows, count, ...one], ...(count === 1 ? [[rows, ...one]] : [])];
}

function positionShapes({ branches, text, prefix, remembers, chunk }: GraphSizes, graph: GraphName): Shape[] {
  if (graph !== "denoise")
    return remembers
      ? [[branches, text]]
      : [
          [branches, text],
          [branches, prefix],
        ];
  return remembers
    ? []
    : [
        [branches, chunk],
        [branches, chunk + 1],
      ];
}
