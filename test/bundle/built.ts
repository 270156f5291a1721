/** The molmoact2 reference bundle, built once for all tests of this folder, and its parity vector. */
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buildBundle } from "../../src/bundle/build.ts";
import type { Manifest, Parity } from "../../src/bundle/manifest.ts";
import { readBundle } from "../../src/bundle/read.ts";
import type { Bundle } from "../../src/engine/engine.ts";
import { Problem } from "../../src/error.ts";
import { present } from "../../src/std/assert.ts";
import type { Given } from "./reference.ts";

export const MODEL_DIR = join(import.meta.dir, "../../models/molmoact2-yam");

/** An empty folder of this process. */
export async function emptyDir(): Promise<string> {
  return await mkdtemp(join(tmpdir(), "tendon-bundle-"));
}

/** Builds into `dir`; a problem fails the test. */
export async function buildInto(dir: string): Promise<Manifest> {
  const manifest = await buildBundle(MODEL_DIR, dir);
  if (manifest instanceof Problem) throw new Error(manifest.message);
  return manifest;
}

/** Builds and reads the bundle in a fresh folder. */
export async function freshBundle(): Promise<Bundle> {
  const dir = join(await emptyDir(), "molmoact2-yam");
  await buildInto(dir);
  const bundle = await readBundle(dir);
  if (bundle instanceof Problem) throw new Error(bundle.message);
  return bundle;
}

/** The parity observation of a bundle with the rows that NumPy computed. */
export async function parityOf({ manifest, paths }: Bundle): Promise<{ given: Given; actions: number[][] }> {
  const file = present(paths.get(manifest.parity.file), "parity file");
  const { frames, actions, provenance: _, ...rest } = JSON.parse(await readFile(file, "utf8")) as Parity;
  const jpegs = await Promise.all(frames.map((name) => readFile(join(dirname(file), name))));
  return { given: { jpegs, ...rest }, actions };
}

/** Largest difference of any value. */
export function largestDifference(one: readonly number[][], other: readonly number[][]): number {
  const differences = one.flatMap((row, index) =>
    row.map((value, column) => Math.abs(value - present(other[index]?.[column], "value"))),
  );
  return Math.max(...differences);
}
