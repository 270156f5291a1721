/**
 * Family world-action: one causal transformer over observed frames and future actions (DreamZero and its like). Observed
 * latent frames become keys and values of an episode's memory; the denoise graph predicts the next latent frames and the
 * action rows together, and only the rows are used.
 *
 * Three graphs: prefill reads a first observation, extend a later one on top of the memory, denoise is one flow step. With
 * guidance everything that depends on the text has two rows, with and without the instruction.
 */
import type { Facts, WorldArchitecture } from "../architecture.ts";
import type { Graphs } from "../families.ts";
import { firstBroken } from "../fault.ts";
import { Weights } from "../weights.ts";
import { buildDenoise } from "./denoise.ts";
import { layOut } from "./plan.ts";
import { buildReader } from "./reader.ts";

/** All graphs with random weights; `vocabulary` is the number of token ids. */
export function worldAction(facts: Facts, architecture: WorldArchitecture, vocabulary: number): Graphs {
  const plan = layOut(facts, architecture, vocabulary);
  const weights = new Weights(architecture.seed);
  return {
    prefill: buildReader(plan, "prefill", weights),
    extend: buildReader(plan, "extend", weights),
    denoise: buildDenoise(plan, weights),
  };
}

/** The first rule that is broken: a JSON path of model.json, what was found there and what was expected. */
export function worldActionMismatch(facts: Facts, { transformer: size }: WorldArchitecture): string | undefined {
  const { image, frames, memory, cameras } = facts;
  if (memory === null) return "/memory: found null, expected the window of an episode";
  const patches = (image.width / size.patch) * (image.height / size.patch);
  return firstBroken([
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
  ]);
}
