/** Reference bundles, each built once for all tests of a process, and their parity vectors. */
import { cp, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import { buildBundle, type Options } from "../../src/bundle/build.ts";
import type { Parity } from "../../src/bundle/manifest.ts";
import { type Bundle, readBundle } from "../../src/bundle/read.ts";
import type { Precision } from "../../src/bundle/weights.ts";
import { computeRows } from "../../src/cli/bundle/rows.ts";
import { assert, present } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";
import type { FlowBundle, FlowManifest } from "./flow-bundle.ts";
import type { GoldenInput } from "./reference.ts";

export const MODEL_DIR = join(import.meta.dir, "../../models/molmoact2-yam");

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
): Promise<FlowManifest> {
  const manifest = await buildBundle(modelDir, dir, precision, { computeRows, ...options });
  if (manifest instanceof Problem) throw new Error(manifest.message);
  return manifest as FlowManifest;
}

/** Bundles of the models that no test writes to. All of them take gigabytes if each test has its own. */
const bundles = new Map<string, Promise<FlowBundle>>();
const FIXED = [resolve(MODEL_DIR, ".."), join(import.meta.dir, "../vectors")];

/**
 * The bundle of a model folder, by its name or path. Who changes its files copies them first, and the manifest is the caller's own.
 * The bundle of a folder that a test has made is built in a fresh folder, because that one may have changed.
 */
export async function bundleOf(
  model: string,
  precision: Precision = "f32",
  options: Options = {},
): Promise<FlowBundle> {
  const from = resolve(MODEL_DIR, "..", model);
  if (!FIXED.some((folder) => from.startsWith(folder + sep))) return await build(from, precision, options);
  const key = JSON.stringify([from, precision, options]);
  const building = bundles.get(key) ?? build(from, precision, options);
  bundles.set(key, building);
  const { manifest, ...bundle } = await building;
  return { ...bundle, manifest: structuredClone(manifest) };
}

async function build(from: string, precision: Precision, options: Options): Promise<FlowBundle> {
  const dir = join(await emptyDir(), "bundle");
  await buildInto(dir, from, precision, options);
  const bundle = await readBundle(dir);
  if (bundle instanceof Problem) throw new Error(bundle.message);
  return bundle as FlowBundle;
}

/** A copy of a model folder whose facts are changed in place. */
export async function changedModel(from: string, change: (facts: ModelFile) => void): Promise<string> {
  const folder = join(await emptyDir(), "model");
  await cp(from, folder, { recursive: true });
  const path = join(folder, "model.json");
  const facts = JSON.parse(await readFile(path, "utf8")) as ModelFile;
  change(facts);
  await writeFile(path, JSON.stringify(facts));
  return folder;
}

/** The parity observation of a bundle with the rows that NumPy computed. */
export async function parityOf(bundle: Bundle): Promise<Golden> {
  return present((await episodeOf(bundle))[0], "an observation");
}

/** One observation and the rows that NumPy computed for it. */
export interface Golden {
  readonly given: GoldenInput;
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

/** Largest difference of any value of the chunks of an episode. */
export function episodeDifference(one: readonly number[][][], other: readonly number[][][]): number {
  assert(one.length === other.length, "both have as many chunks");
  return Math.max(...one.map((chunk, index) => largestDifference(chunk, other[index] ?? [])));
}

/** Largest difference of any value. */
export function largestDifference(one: readonly number[][], other: readonly number[][]): number {
  const differences = one.flatMap((row, index) =>
    row.map((value, column) => Math.abs(value - present(other[index]?.[column], "value"))),
  );
  return Math.max(...differences);
}
