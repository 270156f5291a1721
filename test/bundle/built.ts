/** The molmoact2 reference bundle, built once for all tests of this folder, and its parity vector. */
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { buildBundle, type Options } from "../../src/bundle/build.ts";
import type { Manifest, Parity } from "../../src/bundle/manifest.ts";
import { readBundle } from "../../src/bundle/read.ts";
import type { Precision } from "../../src/bundle/weights.ts";
import type { Bundle } from "../../src/engine/engine.ts";
import { Problem } from "../../src/error/problem.ts";
import { present } from "../../src/std/assert.ts";
import type { Given } from "./reference.ts";

export const MODEL_DIR = join(import.meta.dir, "../../models/molmoact2-yam");

/** Folders of small models, each with what a published policy declares and no served one; test/vectors/README.md. */
export const VARIANT_DIR = join(import.meta.dir, "../vectors/models");

/** An empty folder of this process. */
export async function emptyDir(): Promise<string> {
  return await mkdtemp(join(tmpdir(), "tendon-bundle-"));
}

/** Builds molmoact2 into `dir`; a problem fails the test. */
export async function buildInto(
  dir: string,
  modelDir = MODEL_DIR,
  precision?: Precision,
  options?: Options,
): Promise<Manifest> {
  const manifest = await buildBundle(modelDir, dir, precision, options);
  if (manifest instanceof Problem) throw new Error(manifest.message);
  return manifest;
}

/** Builds and reads molmoact2's bundle in a fresh folder. */
export function freshBundle(): Promise<Bundle> {
  return bundleOf("molmoact2-yam");
}

/** The bundle of a model folder, by its name or path, built in a fresh folder. */
export async function bundleOf(model: string, precision?: Precision, options?: Options): Promise<Bundle> {
  const dir = join(await emptyDir(), "bundle");
  await buildInto(dir, resolve(MODEL_DIR, "..", model), precision, options);
  const bundle = await readBundle(dir);
  if (bundle instanceof Problem) throw new Error(bundle.message);
  return bundle;
}

/** The parity observation of a bundle with the rows that NumPy computed. */
export async function parityOf(bundle: Bundle): Promise<Golden> {
  return present((await episodeOf(bundle))[0], "an observation");
}

/** One observation and the rows that NumPy computed for it. */
export interface Golden {
  readonly given: Given;
  readonly actions: number[][];
  readonly cacheReset: boolean;
}

/** The parity episode of a bundle. */
export async function episodeOf({ manifest, paths }: Bundle): Promise<Golden[]> {
  const file = present(paths.get(manifest.parity.file), "parity file");
  const { instruction, seed, observations } = JSON.parse(await readFile(file, "utf8")) as Parity;
  return await Promise.all(
    observations.map(async ({ frames, state, step, prefix, actions, cache_reset: cacheReset }) => {
      const jpegs = await Promise.all(frames.map((name) => readFile(join(dirname(file), name))));
      return { given: { jpegs, instruction, seed, state, step, ...(prefix && { prefix }) }, actions, cacheReset };
    }),
  );
}

/** Largest difference of any value. */
export function largestDifference(one: readonly number[][], other: readonly number[][]): number {
  const differences = one.flatMap((row, index) =>
    row.map((value, column) => Math.abs(value - present(other[index]?.[column], "value"))),
  );
  return Math.max(...differences);
}
