/** The stages of one golden case, in the order in which a chunk is computed: how far each part of them is off, and where. */
import { goldenLimit } from "../../bundle/golden.ts";
import { IMAGE_TOKENS } from "../../bundle/inner-value.ts";
import type { Manifest } from "../../bundle/manifest.ts";
import type { Tensor } from "../../bundle/safetensors.ts";
import { largest, part } from "./difference.ts";
import { type Played, viewsOf } from "./play.ts";
import { type Pieces, promptFault } from "./tokens.ts";

export const STAGES = [
  "pictures",
  "normalised state",
  "tokens",
  "image tokens",
  "prefix cache",
  "velocity",
  "normalised rows",
  "rows",
] as const;
export type Stage = (typeof STAGES)[number];

/** A part of a stage: one view, layer or step of one case. */
export interface Part {
  readonly stage: Stage;
  readonly case: number;
  /** Infinite where the two cannot be compared. */
  readonly size: number;
  readonly limit: number;
  /** The place of the largest difference, with both values. */
  readonly where: string;
}

/** The parts of a case that have golden values. */
export async function partsOf(played: Played, manifest: Manifest, pieces: Pieces): Promise<Part[]> {
  const { number, expected, found } = played;
  const parts: Part[] = [];
  const limit = goldenLimit(manifest);
  const put = (stage: Stage, of: string, names: readonly string[], [mine, golden]: readonly [Tensor, Tensor]) => {
    const off = largest(mine, golden);
    const where =
      typeof off === "string"
        ? `${of}: found ${off}`
        : `${[of, ...off.at.map((index, dim) => `${names[dim]} ${index}`)].filter(Boolean).join(", ")}: ${off.found}, expected ${off.expected}`;
    parts.push({
      stage,
      case: number,
      limit,
      where,
      size: typeof off === "string" ? Number.POSITIVE_INFINITY : off.size,
    });
  };
  /** Compares the value of one name on both sides. */
  const both = async (stage: Stage, name: string, names: readonly string[], of = "") => {
    const [mine, golden] = [await found(name), await expected(name)];
    if (mine && golden) put(stage, of, names, [mine, golden]);
  };
  const views = viewsOf(manifest);

  const pictures = await picturesOf(played, manifest);
  for (const [view, name] of views.entries()) {
    const golden = await expected(`images.${view}`);
    const picture = pictures[view];
    if (golden && picture) put("pictures", `view ${view} (${name})`, ["channel", "row", "column"], [picture, golden]);
  }
  const state = await found("normalised_state");
  const goldenState = await expected("state");
  if (state && goldenState)
    put("normalised state", "", ["column"], [padded(state, goldenState.shape[0] ?? 0), goldenState]);
  await promptOf(played, manifest, state, pieces).then((one) => one && parts.push(one));
  const tokens = await found(IMAGE_TOKENS);
  for (const [view, name] of views.entries()) {
    const golden = await expected(`image_tokens.${view}`);
    if (!(golden && tokens)) continue;
    const mine = part(tokens, view, [manifest.image.tokens, tokens.shape[2] ?? 0]);
    put("image tokens", `view ${view} (${name})`, ["token", "column"], [mine, golden]);
  }
  const mask = await found("prefix_mask");
  for (let layer = 0; ; layer += 1) {
    const kinds = [
      ["past_k", "keys"],
      ["past_v", "values"],
    ] as const;
    const caches = await Promise.all(
      kinds.map(async ([name]) => [await found(`${name}_${layer}`), await expected(`${name}.${layer}`)]),
    );
    if (caches.every(([mine]) => mine === undefined)) break;
    for (const [at, [mine, golden]] of caches.entries()) {
      if (!(mine && golden && mask)) continue;
      put(
        "prefix cache",
        `layer ${layer}, ${kinds[at]?.[1]}`,
        ["head", "token", "column"],
        [valid(mine, mask), golden],
      );
    }
  }
  for (let step = 0; step < manifest.flow.steps; step += 1) {
    await both("velocity", `velocity.${step}`, ["row", "column"], `step ${step}`);
  }
  await both("normalised rows", "actions", ["row", "column"]);
  await both("rows", "rows", ["row", "column"]);
  return parts;
}

/** The pictures that the graph read, normalised, view by view, each [3, height, width]. */
async function picturesOf({ found }: Played, { graphs, image }: Manifest): Promise<Tensor[]> {
  const { width, height, mean, std } = image;
  const shape = [3, height, width];
  const pictures: Tensor[] = [];
  for (const { name } of graphs.prefill.inputs.filter(({ role }) => role === "images")) {
    const port = await found(name);
    if (port === undefined) continue;
    const views = port.values.length / (3 * height * width);
    for (let view = 0; view < views; view += 1) {
      const { values } = part(port, view, shape);
      if (!(values instanceof Uint8Array)) {
        pictures.push({ shape, values });
        continue;
      }
      const interleaved = port.shape.at(-1) === 3;
      const normal = Float32Array.from({ length: values.length }, (_, at) => {
        const channel = Math.floor(at / (height * width));
        const pixel = interleaved ? (at % (height * width)) * 3 + channel : at;
        return ((values[pixel] ?? 0) / 255 - (mean[channel] ?? 0)) / (std[channel] ?? 1);
      });
      pictures.push({ shape, values: normal });
    }
  }
  return pictures;
}

async function promptOf(
  { number, found, expected }: Played,
  manifest: Manifest,
  state: Tensor | undefined,
  pieces: Pieces,
) {
  const port = (role: "tokens" | "token_mask") =>
    manifest.graphs.prefill.inputs.find((one) => one.role === role)?.name ?? "";
  const [tokens, mask, golden] = [
    await found(port("tokens")),
    await found(port("token_mask")),
    await expected("tokens"),
  ];
  if (!(tokens && mask && golden)) return undefined;
  const ids = [...tokens.values].filter((_, at) => mask.values[at] !== 0);
  const fault = promptFault(ids, [...golden.values], manifest, state?.values ?? [], pieces);
  const size = fault === undefined ? 0 : Number.POSITIVE_INFINITY;
  return { stage: "tokens", case: number, size, limit: 0, where: fault ?? "" } as const;
}

/** [1, heads, tokens, width] → [heads, valid tokens, width]. */
function valid({ shape: [, heads = 0, tokens = 0, width = 0], values }: Tensor, mask: Tensor): Tensor {
  const kept = Array.from({ length: tokens }, (_, token) => token).filter((token) => mask.values[token] !== 0);
  const to = new Float32Array(heads * kept.length * width);
  for (let head = 0; head < heads; head += 1) {
    for (const [at, token] of kept.entries()) {
      const from = (head * tokens + token) * width;
      to.set(values.subarray(from, from + width), (head * kept.length + at) * width);
    }
  }
  return { shape: [heads, kept.length, width], values: to };
}

/** A vector with zeros behind it. */
function padded({ values }: Tensor, length: number): Tensor {
  const to = new Float32Array(Math.max(length, values.length));
  to.set(values);
  return { shape: [to.length], values: to };
}
