/**
 * The reference path of a chunk, for tests: onnxruntime-node for the graphs, everything around them in plain TypeScript.
 *
 * Not fast and not for the service: it blocks the event loop for the whole inference. The native engine's chunks are compared with it.
 */
import { readFile } from "node:fs/promises";
import { InferenceSession, Tensor } from "onnxruntime-node";
import sharp from "sharp";
import type { Manifest, NormStats } from "../../src/bundle/manifest.ts";
import { present } from "../../src/std/assert.ts";
import { Bpe } from "./bpe.ts";
import type { FlowBundle, FlowManifest } from "./flow-bundle.ts";
import { philoxNormal } from "./philox.ts";
import { resizePillow, type Size } from "./pillow.ts";

export interface GoldenInput {
  /** JPEG files, camera-major, oldest first. */
  readonly jpegs: readonly Uint8Array[];
  readonly instruction: string;
  /** Robot units, in the order of the manifest's state columns. */
  readonly state: readonly number[];
  readonly seed: number;
  readonly step: number;
  /** Rows that the chunk continues, in robot units. The reference path continues none. */
  readonly prefix?: readonly (readonly number[])[];
}

/** What the graphs are fed, before a batch is made of it. */
export interface Feeds {
  /** [images, 3, height, width] */
  readonly images: Float32Array;
  /** [tokens_max], padded; or shorter, all of a batch alike. */
  readonly tokens: BigInt64Array;
  readonly tokenMask: Uint8Array;
  /** [width], normalised, then zeros. */
  readonly state: Float32Array;
  /** [rows, width] */
  readonly noise: Float32Array;
}

type Cache = Record<string, Tensor>;

/** A bundle with its sessions open. One thread, so that a time is a time of one core. */
export class Reference {
  private constructor(
    readonly manifest: FlowManifest,
    private readonly norm: NormStats,
    readonly bpe: Bpe,
    private readonly prefillSession: InferenceSession,
    private readonly denoiseSession: InferenceSession,
  ) {}

  static async open({ manifest, paths }: FlowBundle): Promise<Reference> {
    const path = (file: string) => present(paths.get(file), file);
    const session = (file: string) =>
      InferenceSession.create(path(file), { intraOpNumThreads: 1, interOpNumThreads: 1, executionProviders: ["cpu"] });
    return new Reference(
      manifest,
      JSON.parse(await readFile(path(manifest.norm), "utf8")) as NormStats,
      new Bpe(await readFile(path(manifest.tokenizer), "utf8")),
      await session(manifest.graphs.prefill.file),
      await session(manifest.graphs.denoise.file),
    );
  }

  /** Decodes, resizes, normalises, tokenises, draws the noise. */
  async prepare({ jpegs, instruction, state, seed, step }: GoldenInput): Promise<Feeds> {
    const { image, prompt, action, export_id } = this.manifest;
    const images = new Float32Array(jpegs.length * 3 * image.height * image.width);
    for (const [index, jpeg] of jpegs.entries()) {
      images.set(await this.frameTensor(jpeg), index * 3 * image.height * image.width);
    }
    const ids = this.promptIds(instruction, state);
    const tokens = new BigInt64Array(prompt.tokens_max).fill(BigInt(prompt.pad_id));
    tokens.set(ids.map(BigInt));
    const tokenMask = new Uint8Array(prompt.tokens_max).fill(1, 0, ids.length);
    const told = new Float32Array(this.manifest.state.width);
    told.set(this.normalisedState(state));
    return {
      images,
      tokens,
      tokenMask,
      state: told,
      noise: philoxNormal(export_id, seed, step, action.rows * action.width),
    };
  }

  /** The graphs' cache for one batch of observations. */
  async prefill(batch: readonly Feeds[]): Promise<Cache> {
    const roles = { images: joined, tokens: joinedTokens, token_mask: joinedMasks, state: joinedStates };
    const feeds: Cache = {};
    for (const input of this.manifest.graphs.prefill.inputs) {
      const words = { batch: batch.length, prompt: batch[0]?.tokens.length ?? 0, prefix: Number.NaN };
      const shape = input.shape.map((dim) => (typeof dim === "string" ? words[dim] : dim));
      feeds[input.name] = roles[input.role as keyof typeof roles](batch, shape);
    }
    return await this.prefillSession.run(feeds);
  }

  /** One velocity of latents [batch, rows, width]. */
  async velocity(latent: Float32Array, time: number, cache: Cache, batch: number): Promise<Float32Array> {
    const { inputs, outputs } = this.manifest.graphs.denoise;
    const feeds: Cache = {};
    for (const { name, role, from, shape } of inputs) {
      if (role === "time") feeds[name] = new Tensor("float32", [time], [1]);
      else if (role === "cache") feeds[name] = present(cache[from ?? ""], name);
      else feeds[name] = new Tensor("float32", latent, [batch, ...(shape.slice(1) as number[])]);
    }
    const result = await this.denoiseSession.run(feeds);
    return present(result[present(outputs[0], "velocity").name], "velocity").data as Float32Array;
  }

  /** Rows of every observation of the batch in the model's own units, [batch · rows · width]. */
  async latents(batch: readonly Feeds[], cache?: Cache): Promise<Float32Array> {
    const { t_start, t_end, steps, times } = this.manifest.flow;
    const timeOf = (index: number) => times?.[index] ?? t_start + (index * (t_end - t_start)) / steps;
    const kept = cache ?? (await this.prefill(batch));
    const x = Float32Array.from(batch.flatMap(({ noise }) => [...noise]));
    for (let step = 0; step < steps; step += 1) {
      const dt = timeOf(step + 1) - timeOf(step);
      const v = await this.velocity(x, timeOf(step), kept, batch.length);
      for (let index = 0; index < x.length; index += 1) x[index] = present(x[index], "x") + dt * present(v[index], "v");
    }
    return x;
  }

  /** Rows [rows, columns] in robot units of one observation's latent, absolute and inside their ranges. */
  rows(latent: Float32Array, state: readonly number[]): number[][] {
    const { rows, width, columns } = this.manifest.action;
    return Array.from({ length: rows }, (_, row) =>
      columns.map(({ relative_to, min, max, ...how }, column) => {
        const x = present(latent[row * width + column], "latent");
        const base = relative_to === null ? 0 : present(state[relative_to], "state");
        return Math.min(max, Math.max(min, base + unnormalised(x, how, rowOf(this.norm.action, row), column)));
      }),
    );
  }

  /** Prompt token ids without padding. */
  promptIds(instruction: string, state: readonly number[]): number[] {
    const text = instruction
      .split(/\p{White_Space}+/u)
      .filter((word) => word !== "")
      .join(" ");
    return this.manifest.prompt.parts.flatMap((part) => {
      if (part.kind === "token") return [part.id];
      if (part.kind === "instruction") return this.bpe.encode(text);
      if (part.kind === "template") return this.bpe.encode(this.templateText(part, instruction, state));
      return this.normalisedState(state).map((x) => {
        return part.base + roundTiesToEven(((Math.min(1, Math.max(-1, x)) + 1) / 2) * (part.bins - 1));
      });
    });
  }

  private normalisedState(state: readonly number[]): number[] {
    return this.manifest.state.columns.map((how, column) =>
      normalised(present(state[column], "state value"), how, this.norm.state, column),
    );
  }

  /** The text of a template with instruction and state in their places. */
  private templateText(part: { text: string; bins?: number }, instruction: string, state: readonly number[]): string {
    const text = instruction
      .split(/[\p{White_Space}_]+/u)
      .filter((word) => word !== "")
      .join(" ");
    const numbers = this.normalisedState(state).map((x) => {
      // numpy's digitize: how many of the edges −1, −1 + 2 / bins, … lie at or below x, less one.
      const { bins = 0 } = part;
      const edges = Array.from({ length: bins }, (_, index) => -1 + (2 * index) / bins);
      return edges.filter((edge) => edge <= x).length - 1;
    });
    return part.text.replace("{instruction}", text).replace("{state}", numbers.join(" "));
  }

  /** The picture stretched, or whole on black. */
  private fitted(picture: Size & { readonly data: Uint8Array }): Uint8Array {
    const { width, height, resize, place = "centre" } = this.manifest.image;
    if (resize !== "pad") return resizePillow(picture, { width, height });
    const ratio = Math.max(picture.width / width, picture.height / height);
    const small = { width: Math.trunc(picture.width / ratio), height: Math.trunc(picture.height / ratio) };
    const part = { centre: 0.5, bottom_right: 1 }[place];
    const [left, above] = [Math.trunc((width - small.width) * part), Math.trunc((height - small.height) * part)];
    const whole = new Uint8Array(width * height * 3);
    const rgb = resizePillow(picture, small);
    for (let row = 0; row < small.height; row += 1) {
      const line = rgb.subarray(row * small.width * 3, (row + 1) * small.width * 3);
      whole.set(line, ((above + row) * width + left) * 3);
    }
    return whole;
  }

  /** [3, height, width], row-major. */
  private async frameTensor(jpeg: Uint8Array): Promise<Float32Array> {
    const { width, height, mean, std } = this.manifest.image;
    const { data, info } = await sharp(jpeg)
      .toColourspace("srgb")
      .removeAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true });
    const rgb = this.fitted({ data, width: info.width, height: info.height });
    const pixels = width * height;
    const tensor = new Float32Array(3 * pixels);
    for (let channel = 0; channel < 3; channel += 1) {
      for (let pixel = 0; pixel < pixels; pixel += 1) {
        const value = present(rgb[3 * pixel + channel], "pixel") / 255;
        tensor[channel * pixels + pixel] = (value - present(mean[channel], "mean")) / present(std[channel], "std");
      }
    }
    return tensor;
  }
}

/** One chunk, rows × columns in robot units. */
export async function referenceChunk(bundle: FlowBundle, given: GoldenInput): Promise<number[][]> {
  const reference = await Reference.open(bundle);
  const latent = await reference.latents([await reference.prepare(given)]);
  return reference.rows(latent, given.state);
}

function joined(batch: readonly Feeds[], shape: number[]): Tensor {
  return new Tensor("float32", Float32Array.from(batch.flatMap(({ images }) => [...images])), shape);
}

function joinedTokens(batch: readonly Feeds[], shape: number[]): Tensor {
  return new Tensor("int64", BigInt64Array.from(batch.flatMap(({ tokens }) => [...tokens])), shape);
}

function joinedStates(batch: readonly Feeds[], shape: number[]): Tensor {
  return new Tensor("float32", Float32Array.from(batch.flatMap(({ state }) => [...state])), shape);
}

function joinedMasks(batch: readonly Feeds[], shape: number[]): Tensor {
  return new Tensor("bool", Uint8Array.from(batch.flatMap(({ tokenMask }) => [...tokenMask])), shape);
}

type Stats = NormStats["state"];
type How = Pick<Manifest["state"]["columns"][number], "norm" | "epsilon" | "clip">;

/** The statistics of one row of a chunk. */
function rowOf(stats: NormStats["action"], row: number): Stats {
  const entries = Object.entries(stats).map(([name, values]) => [
    name,
    values.map(Number.isFinite).includes(false) ? values[row] : values,
  ]);
  return Object.fromEntries(entries) as Stats;
}

function normalised(x: number, { norm, epsilon = 1e-6, clip }: How, stats: Stats, column: number): number {
  const of = (values: readonly number[] | undefined) => statistic(values, column);
  const linear = (low: number, high: number) => (2 * (x - low)) / (high - low + epsilon) - 1;
  const forms = {
    none: () => x,
    mean_std: () => (x - of(stats.mean)) / (of(stats.std) + epsilon),
    quantile: () => linear(of(stats.q01), of(stats.q99)),
    min_max: () => linear(of(stats.min), of(stats.max)),
  };
  return clipped(forms[norm](), clip);
}

function unnormalised(value: number, { norm, epsilon = 1e-6, clip }: How, stats: Stats, column: number): number {
  const x = clipped(value, clip);
  const of = (values: readonly number[] | undefined) => statistic(values, column);
  const linear = (low: number, high: number) => ((x + 1) / 2) * (high - low + epsilon) + low;
  const forms = {
    none: () => x,
    mean_std: () => x * (of(stats.std) + epsilon) + of(stats.mean),
    quantile: () => linear(of(stats.q01), of(stats.q99)),
    min_max: () => linear(of(stats.min), of(stats.max)),
  };
  return forms[norm]();
}

function clipped(x: number, clip: How["clip"]): number {
  return clip === undefined ? x : Math.min(clip.max, Math.max(clip.min, x));
}

function statistic(values: readonly number[] | undefined, column: number): number {
  return present(values?.[column], `statistic of column ${column}`);
}

function roundTiesToEven(x: number): number {
  const floor = Math.floor(x);
  if (x - floor !== 0.5) return Math.round(x);
  return floor % 2 === 0 ? floor : floor + 1;
}
