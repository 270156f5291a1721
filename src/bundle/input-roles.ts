/**
 * The sources of the values of a graph's inputs. A role is a word of the manifest, its name, dtype and shape are the graph's own. The
 * native engine has the same table (native/src/flow/inputs.rs).
 *
 * B is "batch", 1 on a model with memory; R is B, or the number of branches on a model with memory. T are the tokens of the prompt; with
 * buckets they are the word "prompt".
 */
import type { Graph, InputRole, Manifest } from "./manifest.ts";

export type GraphName = "prefill" | "extend" | "denoise";
export type Input = Graph["inputs"][number];
type Shape = Input["shape"];
type Dtype = Input["dtype"];
type Field = "buckets" | "cameras";

interface Rule {
  readonly graphs: readonly GraphName[];
  readonly dtypes: readonly Dtype[];
  /** The shapes that it may have; of the other roles `checkSources` knows them. */
  readonly shapes?: (sizes: GraphSizes, graph: GraphName, input: Input) => Shape[];
  readonly fields?: readonly Field[];
  /** Only on a model with memory, or only on one without. */
  readonly memory?: boolean;
  /** Only on a model that reads an instruction. */
  readonly text?: boolean;
  /** At most one in a graph. */
  readonly once?: true;
}

const READERS = ["prefill", "extend"] as const;
const ALL = ["prefill", "extend", "denoise"] as const;
const FLOATS = ["f32", "f16", "bf16"] as const;

export const RULES: Readonly<Record<InputRole, Rule>> = {
  /**
   * f32, normalised, or u8, pixels that the graph normalises: [B, views · frames, 3, height, width]. `cameras` names the views, in several inputs or one, each camera of the model once; a view of a name that
   * the model has not is a black picture.
   */
  images: { graphs: READERS, dtypes: ["f32", "u8"], fields: ["cameras"], shapes: imageShapes },
  /** [R, T], then `pad_id`. */
  tokens: { graphs: READERS, dtypes: ["i64"], text: true, shapes: ({ branches, text }) => [[branches, text]] },
  /** [R, T], true for a token. */
  token_mask: { graphs: ALL, dtypes: ["bool"], text: true, shapes: ({ branches, text }) => [[branches, text]] },
  /** [B, views], or [B] of one view: true for a view that the model has a camera for. */
  image_mask: {
    graphs: ALL,
    dtypes: ["bool"],
    fields: ["cameras"],
    shapes: ({ rows, views }, _, { cameras = views }) => [
      [rows, cameras.length],
      ...(cameras.length === 1 ? [[rows]] : []),
    ],
  },
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
  /** [1], or [B, rows] with a time for each row: that of the flow's end for a row that the chunk continues. */
  time: {
    graphs: ["denoise"],
    dtypes: ["f32", "i64"],
    fields: ["buckets"],
    shapes: ({ rows, chunk }) => [[1], [rows, chunk]],
  },
  /** [B, state.width], normalised, then zeros. One that prefill reads is a token of the prefix, which a cache has behind the prompt's. */
  state: { graphs: ALL, dtypes: ["f32"], shapes: ({ rows, state }) => [[rows, state]] },
  /** The output `from` of the prefill graph, same dtype and shape. */
  cache: { graphs: ["denoise"], dtypes: ["bool", "f32", "f16", "bf16"] },
  /** All that was committed of the blocks `from`, of their type [R, …, window · tokens, width], and how many of these tokens are valid, [1]. */
  memory: { graphs: ["extend", "denoise"], dtypes: FLOATS, memory: true },
  memory_length: { graphs: ["extend", "denoise"], dtypes: ["i64"], memory: true, once: true, shapes: () => [[1]] },
  /** The block `from` that this run has written, and how many of its tokens are valid, [1]. Values behind a length are finite, no more. */
  block: { graphs: ["denoise"], dtypes: FLOATS, memory: true },
  block_length: { graphs: ["denoise"], dtypes: ["i64"], memory: true, once: true, shapes: () => [[1]] },
};

function imageShapes({ rows, cameras, frames, image }: GraphSizes, graph: GraphName, input: Input): Shape[] {
  const count = (input.cameras ?? cameras).length * (graph === "extend" ? frames.later : frames.first);
  return [[rows, count, 3, image.height, image.width]];
}

export type GraphSizes = ReturnType<typeof graphSizes>;

/** The sizes that the shapes of a manifest's graphs are made of. */
export function graphSizes(manifest: Manifest) {
  const { memory, guidance, prompt, cameras, frames, image, state, action, graphs } = manifest;
  const images = graphs.prefill.inputs.filter(({ role }) => role === "images");
  /** Names of the views, in the order of the prefix: those of the model's cameras, and others that a policy has. */
  const views = images.flatMap((input) => input.cameras ?? cameras);
  const seen = views.length * frames.later * image.tokens;
  /** A state that prefill reads is a token of the prefix. */
  const told = graphs.prefill.inputs.some(({ role }) => role === "state") ? 1 : 0;
  const remembers = memory !== null;
  const tokens = prompt?.tokens_max ?? 0;
  return {
    remembers,
    /** The model reads an instruction. */
    reads: prompt !== null,
    cameras,
    views,
    image,
    frames,
    width: action.width,
    state: state.width,
    chunk: action.rows,
    /** Leading dimension of tensors with one row per observation, and of those that depend on the text. */
    rows: remembers ? (1 as const) : ("batch" as const),
    branches: remembers ? (guidance === null ? (1 as const) : (2 as const)) : ("batch" as const),
    /** Tokens of the prompt, and of images, prompt and state: numbers, or with buckets words. */
    text: prompt?.buckets ? ("prompt" as const) : tokens,
    prefix: prompt?.buckets ? ("prefix" as const) : seen + tokens + told,
  };
}
