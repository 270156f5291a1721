/**
 * The six reference bundles on `webgpu:0` beside the CPU, in a process that has found a software Vulkan. Prints one line of JSON for
 * each part, in the order of `Part`.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { readBundle } from "../../src/bundle/read.ts";
import type { Bundle, ChunkResult, Engine, Model } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { Failure } from "../../src/error/core.ts";
import { bundleOf, episodeOf, largestDifference } from "../bundle/built.ts";
import { Opened, ok, rowsOf } from "./opened.ts";

const SHIPPED = join(import.meta.dir, "../../dist/models");
export const WEBGPU = "webgpu:0";
/** Observations of the other episode: one that finds an empty memory, and one that reads it. */
const BESIDE = 2;
/** The models that share the device, and their replicas. */
const CROWD: ReadonlyMap<string, number> = new Map([
  ["isaac-0.5-yam", 2],
  ["rho-yam", 1],
]);
/** Chunks of each of them at once: more than it has replicas. */
const AT_ONCE = 3;

/** One bundle on the device. */
export interface Told {
  readonly name: string;
  readonly device: string;
  readonly remembers: boolean;
  /** The largest difference from the CPU's chunk, for each observation. */
  readonly differences: readonly number[];
  readonly resets: readonly boolean[];
  readonly parity: readonly number[];
  readonly deviceBytes: number;
  readonly copies: Model["copies"];
}

/** Several models and replicas at once. */
export interface Crowd {
  readonly chunks: number;
  readonly worst: number;
}

export interface Auto {
  readonly device: string;
  readonly refused: Model["refused"];
}

export type Part =
  | { readonly told: Told }
  | { readonly crowd: Crowd }
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
      const other = { ...given, seed: given.seed + 1 + slot };
      const place = remembers ? { slot } : {};
      const [one, two] = [await cpu.give(other, place), await gpu.give(other, place)];
      differences.push(apart(one, two));
      resets.push(two.cacheReset);
    }
  }
  await cpu.model.unload();
  const { device, parity, deviceBytes, copies } = gpu.model;
  return { name, device, remembers, differences, resets, parity, deviceBytes, copies };
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

/** Which device `auto` takes here. */
async function auto(engine: Engine): Promise<Auto> {
  const bundle = await shipped("molmoact2-yam");
  const model = await engine.load({ bundle, device: "auto", replicas: 1, slots: undefined, threads: 1 });
  if (model instanceof Failure) throw new Error(model.message);
  const { device, refused } = model;
  await model.unload();
  return { device, refused };
}

/** A bundle whose products the device has no kernels for. */
async function refusal(engine: Engine): Promise<string> {
  const bundle = await bundleOf("molmoact2-yam", "int8");
  const failure = await engine.load({ bundle, device: WEBGPU, replicas: 1, slots: undefined, threads: 1 });
  return failure instanceof Failure ? failure.message : "it was loaded";
}

if (import.meta.main) {
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  const together: Opened[] = [];
  for (const name of (await readdir(SHIPPED)).sort()) {
    const replicas = CROWD.get(name);
    const gpu = await Opened.with(engine, await shipped(name), { slots: 2, replicas: replicas ?? 1, device: WEBGPU });
    tell({ told: await compare(engine, name, gpu) });
    if (replicas === undefined) await gpu.model.unload();
    else together.push(gpu);
  }
  tell({ crowd: await crowd(together) });
  tell({ auto: await auto(engine) });
  tell({ refusal: await refusal(engine) });
  await engine.close();
}
