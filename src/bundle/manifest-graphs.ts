/** How a manifest describes a graph: its inputs, its outputs, and the role of each. */
import { type Static, Type } from "@sinclair/typebox";
import { closed, oneOf } from "./shape.ts";

const Dim = Type.Union([Type.Literal("batch"), Type.Integer({ minimum: 1 })]);
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
   * `images` f32 [B, cameras · frames, 3, height, width]; `tokens` i64 [R, prompt.tokens_max]; `token_mask` bool of the same
   * shape, true for a token; `state` f32 [B, state.width], normalised, then zeros; `latent` f32 [B, rows, action.width];
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
