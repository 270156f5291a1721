/** The stages of one golden case, in the order in which a chunk is computed: how far each part of them is off, and where. */
import { goldenLimits } from "../../bundle/golden.ts";
import type { Manifest } from "../../bundle/manifest.ts";
import { Problem } from "../../std/problem.ts";
import { largest, part, type Tensor } from "./difference.ts";
import { INNER, type Played, viewsOf } from "./play.ts";
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
  /** The most that it may be; infinite where it is not judged. */
  readonly limit: number;
  /** The place of the largest difference, with both values. */
  readonly where: string;
}

/** The parts of a case that have golden values. The problem: one that shows nothing, or that has a value which nothing is compared with. */
export function partsOf(played: Played, manifest: Manifest, pieces: Pieces): Part[] | Problem {
  const { number, names: given, expected, found } = played;
  const needed = [...(manifest.flow ? ["noise"] : []), given.includes("actions") ? "actions" : "rows"];
  const lacking = needed.filter((name) => !given.includes(name));
  const list = (names: readonly string[]) => names.map((name) => `${number}.${name}`).join(", ");
  if (lacking.length > 0) {
    return new Problem(
      `the golden values have no ${list(lacking)}; make them again, with rows or actions in each case and the noise of a flow`,
    );
  }
  const parts: Part[] = [];
  const compared = new Set(manifest.flow ? ["noise"] : []);
  const limits = goldenLimits(manifest);
  const put = (stage: Stage, of: string, names: readonly string[], mine: Tensor | undefined, name: string) => {
    const golden = expected(name);
    if (!(mine && golden)) return;
    compared.add(name);
    const off = largest(mine, golden);
    const isGiven = stage === "pictures" || stage === "normalised state";
    const one = { stage, case: number, limit: isGiven ? limits.given : limits.computed };
    if (typeof off === "string") {
      parts.push({ ...one, size: Number.POSITIVE_INFINITY, where: `${of}: found ${off}` });
      return;
    }
    const places = [of, ...off.at.map((index, dim) => `${names[dim]} ${index}`)].filter((word) => word !== "");
    parts.push({ ...one, size: off.size, where: `${places.join(", ")}: ${off.found}, expected ${off.expected}` });
  };
  const views = viewsOf(manifest);
  const pictures = picturesOf(played, manifest);
  for (const [view, name] of views.entries()) {
    const names = ["channel", "row", "column"];
    put("pictures", `view ${view} (${name})`, names, pictures[view], `images.${view}`);
  }
  const state = found("normalised_state");
  put("normalised state", "", ["column"], state && padded(state, expected("state")?.shape[0] ?? 0), "state");
  const prompt = promptOf(played, manifest, state, pieces);
  if (prompt) {
    compared.add("tokens");
    parts.push(prompt);
  }
  const tokens = found(INNER.tokens);
  for (const [view, name] of views.entries()) {
    const mine = tokens && part(tokens, view, [manifest.image.tokens, tokens.shape[2] ?? 0]);
    put("image tokens", `view ${view} (${name})`, ["token", "column"], mine, `image_tokens.${view}`);
  }
  const mask = found("prefix_mask");
  for (let layer = 0; mask && found(`past_k_${layer}`); layer += 1) {
    for (const [name, inner, words] of [
      ["past_k", INNER.k, "keys"],
      ["past_v", INNER.v, "values"],
    ] as const) {
      const cache = found(`${inner}${layer}`) ?? found(`${name}_${layer}`);
      const names = ["head", "token", "column"];
      put("prefix cache", `layer ${layer}, ${words}`, names, cache && valid(cache, mask), `${name}.${layer}`);
    }
  }
  const columns = ["row", "column"];
  for (let step = 0; found(`velocity.${step}`); step += 1) {
    put("velocity", `step ${step}`, columns, found(`velocity.${step}`), `velocity.${step}`);
  }
  put("normalised rows", "", columns, found("normalised_rows"), "actions");
  put("rows", "", columns, found("rows"), "rows");
  const over = given.filter((name) => !compared.has(name));
  if (over.length === 0) return parts;
  return new Problem(
    `the bundle computes nothing to compare with the golden values ${list(over)}; correct their names, or import the checkpoint that they are of`,
  );
}

/** The pictures that the graph read, normalised, view by view, each [3, height, width]. */
function picturesOf({ found }: Played, { graphs, image }: Manifest): Tensor[] {
  const { width, height, mean, std } = image;
  const shape = [3, height, width];
  const normal = found(INNER.pictures);
  if (normal) return Array.from({ length: normal.shape[1] ?? 0 }, (_, view) => part(normal, view, shape));
  const pictures: Tensor[] = [];
  for (const { name } of graphs.prefill.inputs.filter(({ role }) => role === "images")) {
    const port = found(name);
    if (port === undefined) continue;
    const views = port.values.length / (3 * height * width);
    for (let view = 0; view < views; view += 1) {
      const { values } = part(port, view, shape);
      if (!(values instanceof Uint8Array)) {
        pictures.push({ shape, values });
        continue;
      }
      const table = Float32Array.from({ length: values.length }, (_, at) => {
        const channel = Math.floor(at / (height * width));
        return ((values[at] ?? 0) / 255 - (mean[channel] ?? 0)) / (std[channel] ?? 1);
      });
      pictures.push({ shape, values: table });
    }
  }
  return pictures;
}

function promptOf({ number, found, expected }: Played, manifest: Manifest, state: Tensor | undefined, pieces: Pieces) {
  const port = (role: "tokens" | "token_mask") =>
    manifest.graphs.prefill.inputs.find((one) => one.role === role)?.name ?? "";
  const [tokens, mask, golden] = [found(port("tokens")), found(port("token_mask")), expected("tokens")];
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
