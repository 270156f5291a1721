/**
 * The six reference bundles and some variants on `webgpu:0` beside the CPU, in a process that has found a software Vulkan. Prints one line of JSON for
 * each part, in the order of `Part`.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bundle } from "../../src/bundle/read.ts";
import { readBundle, withTolerance } from "../../src/bundle/read.ts";
import { gpuOptions } from "../../src/config/gpu.ts";
import type { ChunkResult, Engine, Model } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, largestDifference } from "../bundle/built.ts";
import { variant } from "../bundle/variants.ts";
import { Opened, ok, refusal, rowsOf } from "./opened.ts";
import { type Remembered, remembered } from "./webgpu-memory.ts";

const SHIPPED = join(import.meta.dir, "../../dist/models");
export const WEBGPU = "webgpu:0";
/** Observations of the other episode: one that finds an empty memory, and one that reads it. */
const BESIDE = 2;
/** The models that share the device, and their replicas. */
const CROWD: ReadonlyMap<string, number> = new Map([
  ["isaac-0.5-yam", 2],
  ["rho-yam", 1],
]);
/** Models that are asked to capture their kernels: one that can, and one with memory, in whose flow the CPU has a part. */
const CAPTURED = ["molmoact2-yam", "picasso-yam"];
export const VARIED = ["groot", "openpi"];
/**
 * Models of both families in half precision, and how far their rows may be from those that NumPy has computed. WebGPU adds up in float16,
 * where the CPU and CUDA add up in float32: of the others, rows are up to 0.06 apart. pi0.5 is within what is asked for all the same.
 */
export const HALVED: ReadonlyMap<string, number> = new Map([
  ["pi0.5-yam", 1e-2],
  ["dreamzero-astra-yam", 3e-2],
]);
/** Chunks of each of them at once: more than it has replicas. */
const AT_ONCE = 3;
/** Far more than it takes until a free replica has had work. */
const ROUNDS_MAX = 40;

/** One bundle on the device. */
export interface Told {
  readonly name: string;
  readonly device: string;
  readonly remembers: boolean;
  /** The largest difference from the CPU's chunk, for each observation. */
  readonly differences: readonly number[];
  readonly resets: readonly boolean[];
  readonly parity: readonly number[];
  readonly flow: Model["flow"];
  readonly deviceBytes: number;
  readonly copies: Model["copies"];
  readonly placesOnDevice: number;
}

/** One that ships. */
export interface Shipped extends Told {
  /** Of sessions that take turns on one place, from those that have a place each; none of a model without memory. */
  readonly parked: readonly number[];
}

/** Several models and replicas at once. */
export interface Crowd {
  readonly chunks: number;
  readonly worst: number;
}

/** One model on the device and on the CPU at the same time. */
export interface Spread {
  readonly devices: readonly string[];
  /** Replicas that had a chunk. */
  readonly served: readonly number[];
  /** The largest difference from the CPU's rows. */
  readonly worst: number;
}

export interface Auto {
  readonly device: string;
  readonly refused: Model["refused"];
}

export type Part =
  | { readonly told: Shipped }
  /** With `cuda_graph`. */
  | { readonly captured: Told }
  /** A variant, whose masks of views are written once. */
  | { readonly varied: Told }
  /** Weights, activations, caches and memory of two bytes, frames as pixels. */
  | { readonly halved: Told }
  /** A variant with a time in integers, captured. */
  | { readonly timed: Told }
  | { readonly remembered: Remembered }
  | { readonly crowd: Crowd }
  | { readonly spread: Spread }
  | { readonly auto: Auto }
  /** Why a bundle of int8 weights is refused. */
  | { readonly refusal: string };

const tell = (part: Part) => process.stdout.write(`${JSON.stringify(part)}\n`);

const apart = (one: ChunkResult, other: ChunkResult) => largestDifference(rowsOf(one), rowsOf(other));

async function shipped(name: string): Promise<Bundle> {
  return ok(await readBundle(join(SHIPPED, name)));
}

/** An episode with another seed than that of the parity vectors, and in turns with it the beginning of another in the other slot. */
async function compare(engine: Engine, name: string, gpu: Opened): Promise<Told> {
  const cpu = await Opened.with(engine, gpu.bundle, { slots: 2 });
  const remembers = gpu.bundle.manifest.memory !== null;
  const differences: number[] = [];
  const resets: boolean[] = [];
  for (const [index, { given }] of (await episodeOf(gpu.bundle)).entries()) {
    for (const slot of index < BESIDE ? [1, 0] : [1]) {
      // The other episode has other cameras.
      const jpegs = slot === 0 ? given.jpegs.toReversed() : given.jpegs;
      const other = { ...given, jpegs, seed: given.seed + 1 + slot };
      const place = remembers ? { slot } : {};
      const [one, two] = [await cpu.give(other, place), await gpu.give(other, place)];
      differences.push(apart(one, two));
      resets.push(two.cacheReset);
    }
  }
  await cpu.model.unload();
  const { device, parity, flow, deviceBytes, copies, sessionMemory } = gpu.model;
  const { placesOnDevice } = sessionMemory;
  return { name, device, remembers, differences, resets, parity, flow, deviceBytes, copies, placesOnDevice };
}

/** The beginning of two episodes, on a place each and in turns on one: how far their chunks are apart. */
async function turns(engine: Engine, { bundle }: Opened): Promise<number[]> {
  const chunks = async (one: Opened) => {
    const own: ChunkResult[] = [];
    for (const { given } of (await episodeOf(bundle)).slice(0, BESIDE)) {
      for (const slot of [0, 1]) own.push(await one.give({ ...given, seed: given.seed + 1 + slot }, { slot }));
    }
    await one.model.unload();
    return own;
  };
  const places = await Opened.with(engine, bundle, { slots: 2, device: WEBGPU });
  const one = await Opened.with(engine, bundle, { slots: 1, parkedBytesMax: "default", device: WEBGPU });
  const [apartFrom, parked] = [await chunks(places), await chunks(one)];
  return parked.map((chunk, index) => apart(chunk, present(apartFrom[index], "the same chunk")));
}

/** All of these models have work for each of their replicas at once. */
async function crowd(models: readonly Opened[]): Promise<Crowd> {
  const chunks = await Promise.all(
    models.map(async (one) => {
      const alone = await one.chunk();
      const all = await Promise.all(Array.from({ length: AT_ONCE }, () => one.chunk()));
      return all.map((chunk) => apart(alone, chunk));
    }),
  );
  return { chunks: chunks.flat().length, worst: Math.max(...chunks.flat()) };
}

/** A model that is asked to capture its kernels: what is replayed reads the frames and the noise of each observation. */
async function captured(engine: Engine, name: string): Promise<Told> {
  const gpu = gpuOptions({ cuda_graph: true });
  const model = await Opened.with(engine, await shipped(name), { slots: 2, device: WEBGPU, gpu });
  const told = await compare(engine, name, model);
  await model.model.unload();
  return told;
}

/** Variants with integer times and masks of views. That they are right in each row of a batch is found before they are there. */
async function varied(engine: Engine): Promise<void> {
  for (const name of VARIED) {
    const model = await Opened.with(engine, await variant(name), { device: WEBGPU });
    tell({ varied: await compare(engine, name, model) });
    await model.model.unload();
  }
}

async function halved(engine: Engine): Promise<void> {
  for (const [name, within] of HALVED) {
    const bundle = withTolerance(await bundleOf(name, "f32", { compute: "f16" }), within);
    const model = await Opened.with(engine, bundle, { slots: 2, device: WEBGPU });
    tell({ halved: await compare(engine, name, model) });
    await model.model.unload();
  }
}

async function timed(engine: Engine): Promise<void> {
  const model = await Opened.with(engine, await variant("groot"), {
    device: WEBGPU,
    gpu: gpuOptions({ cuda_graph: true }),
  });
  tell({ timed: await compare(engine, "groot", model) });
  await model.model.unload();
}

/** A list of two kinds of device, with work until both have had some. */
async function spread(engine: Engine): Promise<Spread> {
  const bundle = await shipped("molmoact2-yam");
  const cpu = await Opened.with(engine, bundle);
  const alone = await cpu.chunk();
  await cpu.model.unload();
  const both = await Opened.with(engine, bundle, { device: [WEBGPU, "cpu"], replicas: 2 });
  const served = new Set<number>();
  let worst = 0;
  for (let round = 0; round < ROUNDS_MAX && served.size < 2; round += 1) {
    for (const chunk of await Promise.all(Array.from({ length: AT_ONCE }, () => both.chunk()))) {
      served.add(chunk.replica);
      worst = Math.max(worst, apart(alone, chunk));
    }
  }
  await both.model.unload();
  return { devices: both.model.devices, served: [...served].sort(), worst };
}

/** Which device `auto` takes here. */
async function auto(engine: Engine): Promise<Auto> {
  const { model } = await Opened.with(engine, await shipped("molmoact2-yam"), { device: "auto" });
  const { device, refused } = model;
  await model.unload();
  return { device, refused };
}

if (import.meta.main) {
  // Without a timer Bun's event loop spins while it waits, and takes a core from the engine.
  const alive = setInterval(() => undefined, 1000);
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  const together: Opened[] = [];
  for (const name of (await readdir(SHIPPED)).sort()) {
    const replicas = CROWD.get(name);
    const gpu = await Opened.with(engine, await shipped(name), { slots: 2, replicas: replicas ?? 1, device: WEBGPU });
    const told = await compare(engine, name, gpu);
    tell({ told: { ...told, parked: told.remembers ? await turns(engine, gpu) : [] } });
    if (told.remembers) {
      tell({ remembered: await remembered(engine, name, gpu.bundle, WEBGPU) });
    }
    if (replicas === undefined) await gpu.model.unload();
    else together.push(gpu);
  }
  tell({ crowd: await crowd(together) });
  for (const name of CAPTURED) tell({ captured: await captured(engine, name) });
  await varied(engine);
  await timed(engine);
  await halved(engine);
  tell({ spread: await spread(engine) });
  tell({ auto: await auto(engine) });
  // The device has no kernels for its products.
  tell({ refusal: await refusal(engine, await bundleOf("molmoact2-yam", "int8"), { device: WEBGPU }) });
  await engine.close();
  clearInterval(alive);
}
