/** The sizes that the shapes of a manifest's graphs are made of. */
import type { Manifest } from "./manifest.ts";
import { commonSize, imageTokens } from "./pictures.ts";

export type GraphSizes = ReturnType<typeof graphSizes>;

export function graphSizes(manifest: Manifest) {
  const { batch, memory, guidance, prompt, cameras, frames, image, state, action, graphs } = manifest;
  const images = graphs.prefill.inputs.filter(({ role }) => role === "images");
  /** Names of the views, in the order of the prefix: those of the model's cameras, and others that a policy has. */
  const views = images.flatMap((input) => input.cameras ?? cameras);
  const seen = frames.later * imageTokens(manifest, views);
  const remembers = memory !== null;
  return {
    remembers,
    cameras,
    /** Shapes of one number for each observation: without a dimension of its own only where there is one at a time. */
    one: batch === 1 ? [[1]] : [],
    views,
    layout: image.layout,
    frames,
    /** The one size that pictures of these views have. */
    sizeOf: (names: readonly string[]) => commonSize(manifest, names),
    width: action.width,
    state: state.width,
    chunk: action.rows,
    /** Leading dimension of tensors with one row per observation, and of those that depend on the text. */
    rows: remembers ? (1 as const) : ("batch" as const),
    branches: remembers ? (guidance === null ? (1 as const) : (2 as const)) : ("batch" as const),
    /** Tokens of the prompt, and of images and prompt: numbers, or with buckets words. */
    text: prompt.buckets ? ("prompt" as const) : prompt.tokens_max,
    prefix: prompt.buckets ? ("prefix" as const) : seen + prompt.tokens_max,
  };
}
