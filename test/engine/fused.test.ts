/** Bundles whose attention is ONNX's one operator: f16 is proved on a CPU, bf16 as float32 that is rounded; every way in which graphs take inputs. */
import { expect, test } from "bun:test";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { HALVES, type Half, type Options } from "../../src/bundle/build.ts";
import type { Bundle } from "../../src/bundle/read.ts";
import { bundleOf, changedModel, episodeDifference, episodeOf, MODEL_DIR } from "../bundle/built.ts";
import { roundedEverywhereOf } from "../bundle/rounded.ts";
import { VARIANTS, variantNames } from "../bundle/variants.ts";
import { episodeRows } from "./opened.ts";
import { rehearse, rehearsedEngine } from "./wrong-provider.ts";

const NAMES = await readdir(join(MODEL_DIR, ".."));
const FUSED: Options["half"] = { attention: "fused" };
const engine = await rehearsedEngine();

const built = (model: string, compute: Half, half: Options["half"] = FUSED) =>
  bundleOf(model, "f32", { compute, ...(half && { half }) });

const rows = (bundle: Bundle, as = bundle.manifest, device = "cpu") => episodeRows(engine, bundle, { as, device });
const goldenOf = async (bundle: Bundle) => (await episodeOf(bundle)).map(({ actions }) => actions);

for (const name of NAMES) {
  test.each(HALVES)(
    `${name}, %s: its rows are within its tolerance, which is at most 20 times what rounding does`,
    async (compute) => {
      const bundle = await built(name, compute);
      const expected = await goldenOf(bundle);
      const computed = await rows(compute === "f16" ? bundle : await roundedEverywhereOf(bundle, compute));
      const { tolerance } = bundle.manifest.parity;
      const largest = episodeDifference(computed, expected);
      process.stderr.write(`  ${name} ${compute}: largest difference from NumPy ${largest.toExponential(2)}\n`);
      expect(largest).toBeLessThan(tolerance);
      expect(largest).toBeGreaterThan(tolerance / 20);
    },
  );

  test(`${name}: a device that takes the whole flow as one graph computes its rows too`, async () => {
    const bundle = await built(name, "f16");
    const expected = await goldenOf(bundle);
    await rehearse({ device: "cuda:0" });
    const computed = await rows(bundle, bundle.manifest, "cuda:0");
    await rehearse();
    expect(episodeDifference(computed, expected)).toBeLessThan(bundle.manifest.parity.tolerance);
  });
}

/** The variant with vectors for builds for GPUs, whose rows are compared with each other. */
async function half(variant: string): Promise<string> {
  const folder = await changedModel(join(VARIANTS, variant), (facts) => {
    facts.half = { f16: { tolerance: 100 } };
  });
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
  const largest = episodeDifference(one, other);
  process.stderr.write(`  ${name}: largest difference ${largest.toExponential(2)}\n`);
  expect(largest).toBeLessThan(1e-2);
  expect(largest).toBeGreaterThan(0);
});
