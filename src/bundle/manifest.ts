/**
 * The bundle manifest, `manifest.json` in a bundle folder: everything that differs between models, as data.
 *
 * A bundle folder holds `manifest.json`, the graphs `prefill.onnx` and `denoise.onnx` (one flow step), `tokenizer.json`,
 * `norm.json` and `parity/`. The native engine reads the same file (native/src/manifest.rs).
 */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { FactFields } from "./manifest-facts.ts";
import { closed, oneOf } from "./shape.ts";

/** `prompt`: the tokens that the prompt is padded to; `prefix`: those and the tokens of all images. Both only with `prompt.buckets`. */
const Dim = Type.Union([
  Type.Literal("batch"),
  Type.Literal("prompt"),
  Type.Literal("prefix"),
  Type.Integer({ minimum: 1 }),
]);
const Dtype = oneOf("f32", "i64", "bool");

/** In the order in which the manifests of reference bundles list the inputs. */
export const INPUT_ROLES = [
  "images",
  "tokens",
  "token_mask",
  "latent",
  "video_latent",
  "time",
  "state",
  "cache",
  "memory_length",
  "memory",
  "block_length",
  "block",
] as const;

const GraphInput = closed({
  name: Type.String(),
  /**
   * What the engine feeds. B is "batch", 1 on a model with memory; R is B, or the number of branches on a model with memory.
   * `images` f32 [B, cameras · frames, 3, height, width]; `tokens` i64 [R, prompt.tokens_max], with
   * buckets [R, "prompt"]; `token_mask` bool of the same shape, true for a token; `state` f32 [B, state.width], normalised, then zeros; `latent` f32 [B, rows, action.width];
   * `video_latent` f32, any fixed shape; `time` f32 [1]; `cache`: the output `from` of the prefill graph, same dtype and shape.
   * On a model with memory: `block`: the block `from` that this run has written, of which `block_length` i64 [1] tokens are
   * valid; `memory`: all that was committed of the blocks `from`, f32 [R, …, window · tokens, width], of which `memory_length`
   * i64 [1] tokens are valid. Values after a length are undefined, but finite.
   */
  role: oneOf(...INPUT_ROLES),
  from: Type.Optional(Type.String()),
  dtype: Dtype,
  shape: Type.Array(Dim),
});

const GraphOutput = closed({
  name: Type.String(),
  /**
   * `cache`: what the denoise graph reads; `block`: what an observation adds to its episode's memory, f32 [R, …, tokens, width]
   * with the tokens of the longest block, zeros behind those written; `velocity` f32 [R, rows, action.width]; `video_velocity`.
   */
  role: oneOf("cache", "block", "velocity", "video_velocity"),
  dtype: Dtype,
  shape: Type.Array(Dim),
});

export const Graph = closed({ file: Type.String(), inputs: Type.Array(GraphInput), outputs: Type.Array(GraphOutput) });
export type Graph = Static<typeof Graph>;

export const Manifest = closed({
  format: Type.Literal(1),
  ...FactFields,
  /**
   * How the matrices of its blocks are kept: absent, float32; `int8` with a float32 scale for each output (quantize.ts), and activations
   * are rounded to int8 before they are multiplied; `bf16`, like the table of tokens, and sums are of float32 (half.ts).
   */
  weights: Type.Optional(oneOf("int8", "bf16")),
  /** sha256 over the digests of graphs, tokenizer and norm statistics (digest.ts), 64 hexadecimal digits; keys the noise. */
  export_id: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  /** `extend` reads the later observations of a model with memory. */
  graphs: closed({ prefill: Graph, extend: Type.Optional(Graph), denoise: Graph }),
  /**
   * Where the graphs keep their large weights, absent where they hold them themselves: ONNX's external data, named in the graphs as here.
   * Mapped when the bundle is loaded: nobody may write into these files while it is served (native/src/weights.rs).
   */
  weight_files: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
  tokenizer: Type.String(),
  norm: Type.String(),
  /** Inputs with the expected chunk of these weights, and the largest allowed difference in robot units. */
  parity: closed({ file: Type.String(), tolerance: Type.Number({ exclusiveMinimum: 0 }) }),
  files: Type.Array(
    closed({
      path: Type.String({ pattern: "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$" }),
      size: Type.Integer({ minimum: 0 }),
      sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
    }),
  ),
});
export type Manifest = Static<typeof Manifest>;

/** One value per column. */
const Columns = Type.Array(Type.Number());

function statistics<S extends TSchema>(of: S) {
  const one = Type.Optional(of);
  return closed({ q01: one, q99: one, min: one, max: one, mean: one, std: one });
}

/**
 * `norm.json`: statistics per column, in the order of `state.columns` and `action.columns`. Unused arrays may be absent. One of the
 * actions may also be a table, such an array for each row of the chunk (GR00T's relative actions).
 */
export const NormStats = closed({
  state: statistics(Columns),
  action: statistics(Type.Union([Columns, Type.Array(Columns)])),
});
export type NormStats = Static<typeof NormStats>;

/** `parity/chunk.json`: observations of one episode and the chunks that an independent implementation computed from the same weights. */
export const Parity = closed({
  instruction: Type.String(),
  seed: Type.Integer({ minimum: 0 }),
  observations: Type.Array(
    closed({
      /** JPEG files beside this one, in wire order. */
      frames: Type.Array(Type.String()),
      /** The model's state vector in robot units, in the order of `state.columns`. */
      state: Type.Array(Type.Number()),
      step: Type.Integer({ minimum: 0 }),
      /** Rows in robot units. */
      actions: Type.Array(Type.Array(Type.Number())),
      /** The memory's window starts anew. */
      cache_reset: Type.Boolean(),
    }),
    { minItems: 1 },
  ),
  /** What computed it, for people. */
  provenance: Type.String(),
});
export type Parity = Static<typeof Parity>;
