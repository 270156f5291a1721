/** The sizes that the shapes of a manifest's graphs are made of. */
import type { Manifest } from "./manifest.ts";

export type GraphSizes = ReturnType<typeof graphSizes>;

export function graphSizes(manifest: Manifest) {
  const { memory, guidance, prompt, cameras, frames, image, state, action, graphs } = manifest;
  const images = graphs.prefill.inputs.filter(({ role }) => role === "images");
  /** Names of the views, in the order of the prefix: those of the model's cameras, and others that a policy has. */
  const views = images.flatMap((input) => input.cameras ?? cameras);
  const seen = views.length * frames.later * image.tokens;
  const remembers = memory !== null;
  return {
    remembers,
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
    /** Tokens of the prompt, and of images and prompt: numbers, or with buckets words. */
    text: prompt.buckets ? ("prompt" as const) : prompt.tokens_max,
    prefix: prompt.buckets ? ("prefix" as const) : seen + prompt.tokens_max,
  };
}
