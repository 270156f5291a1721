/** Bundles whose attention is ONNX's one operator: f16 is proved on a CPU, bf16 as float32 that is rounded; every way in which graphs take inputs. */
import { expect, test } from "bun:test";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import { HALVES, type Half, type Options } from "../../src/bundle/build.ts";
import type { Bundle } from "../../src/bundle/read.ts";
import { bundleOf, emptyDir, episodeOf, largestDifference, MODEL_DIR } from "../bundle/built.ts";
import { roundedEverywhereOf } from "../bundle/rounded.ts";
import { VARIANTS, variantNames } from "../bundle/variants.ts";
import { Opened, rowsOf } from "./opened.ts";
import { engineOfFile, rehearse } from "./wrong-provider.ts";

const NAMES = await readdir(join(MODEL_DIR, ".."));
const FUSED: Options["half"] = { attention: "fused" };
const engine = await engineOfFile();

const built = (model: string, compute: Half, half: Options["half"] = FUSED) =>
  bundleOf(model, "f32", { compute, ...(half && { half }) });

/** The rows of an episode, as if the bundle were the export `as`, whose noise is then the same. */
async function rows(bundle: Bundle, as = bundle.manifest, device = "cpu"): Promise<number[][][]> {
  const manifest = { ...bundle.manifest, export_id: as.export_id };
  const opened = await Opened.with(engine, { ...bundle, manifest }, { slots: 1, device });
  expect([opened.model.refused, opened.model.flow]).toEqual([[], device === "cpu" ? "steps" : "whole"]);
  const place = manifest.memory === null ? {} : { slot: 0 };
  const chunks: number[][][] = [];
  for (const { given } of await episodeOf(bundle)) chunks.push(rowsOf(await opened.give(given, place)));
  await opened.model.unload();
  return chunks;
}

function difference(one: readonly number[][][], other: readonly number[][][]): number {
  expect(one.length).toBe(other.length);
  return Math.max(...one.map((chunk, index) => largestDifference(chunk, other[index] ?? [])));
}

for (const name of NAMES) {
  test.each(HALVES)(
    `${name}, %s: its rows are within its tolerance, which is at most 20 times what rounding does`,
    async (compute) => {
      const bundle = await built(name, compute);
      const expected = (await episodeOf(bundle)).map(({ actions }) => actions);
      const computed = await rows(compute === "f16" ? bundle : await roundedEverywhereOf(bundle, compute));
      const { tolerance } = bundle.manifest.parity;
      const largest = difference(computed, expected);
      process.stderr.write(`  ${name} ${compute}: largest difference from NumPy ${largest.toExponential(2)}\n`);
      expect(largest).toBeLessThan(tolerance);
      expect(largest).toBeGreaterThan(tolerance / 20);
    },
  );

  test(`${name}: a device that takes the whole flow as one graph computes its rows too`, async () => {
    const bundle = await built(name, "f16");
    const expected = (await episodeOf(bundle)).map(({ actions }) => actions);
    await rehearse({ device: "cuda:0" });
    const computed = await rows(bundle, bundle.manifest, "cuda:0");
    await rehearse();
    expect(difference(computed, expected)).toBeLessThan(bundle.manifest.parity.tolerance);
  });
}

/** The variant with vectors for builds for GPUs, whose rows are compared with each other. */
async function half(variant: string): Promise<string> {
  const folder = join(await emptyDir(), "model");
  await cp(join(VARIANTS, variant), folder, { recursive: true });
  const path = join(folder, "model.json");
  const facts = JSON.parse(await readFile(path, "utf8")) as ModelFile;
  facts.half = { f16: { tolerance: 100 } };
  await writeFile(path, JSON.stringify(facts));
  for (const form of ["compute", "fused"])
    await cp(join(folder, "parity/chunk.json"), join(folder, `parity/${form}-f16.json`));
  return folder;
}

test.each(await variantNames())("inputs as in %s: fused attention gives the rows of its products", async (name) => {
  const model = await half(name);
  // On the noise of its float32 bundle.
  const { manifest } = await bundleOf(model);
  const [one, other] = [
    await rows(await built(model, "f16", {}), manifest),
    await rows(await built(model, "f16"), manifest),
  ];
  const largest = difference(one, other);
  process.stderr.write(`  ${name}: largest difference ${largest.toExponential(2)}\n`);
  expect(largest).toBeLessThan(1e-2);
  expect(largest).toBeGreaterThan(0);
});
