/** Vectors that a build makes for itself are those that NumPy computed, for one model of each family. */
import { expect, test } from "bun:test";
import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Options } from "../../src/bundle/build.ts";
import type { Parity } from "../../src/bundle/manifest.ts";
import type { Precision } from "../../src/bundle/weights.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, emptyDir, episodeOf, largestDifference, MODEL_DIR } from "./built.ts";

/** Sums of float32 differ from NumPy's of float64 by less over an episode; tolerances of these builds are at least 20 times as large. */
const SUMS = 5e-4;
const MODELS = join(MODEL_DIR, "..");
const BUILDS: readonly (readonly [vectors: string, precision: Precision, options: Options])[] = [
  ["int8", "int8", {}],
  ["compute-f16", "f32", { compute: "f16" }],
  ["compute-bf16", "f32", { compute: "bf16" }],
];

for (const name of ["pi0.5-yam", "dreamzero-astra-yam"]) {
  test.each(BUILDS)(`${name}, %s: the rows are NumPy's, from the same weights`, async (vectors, precision, options) => {
    const model = join(await emptyDir(), "model");
    await cp(join(MODELS, name), model, { recursive: true });
    await rm(join(model, `parity/${vectors}.json`));
    const made = await episodeOf(await bundleOf(model, precision, options));
    const { observations }: Parity = JSON.parse(await readFile(join(MODELS, name, `parity/${vectors}.json`), "utf8"));
    expect(made).toHaveLength(observations.length);
    const differences = made.map(({ actions }, at) =>
      largestDifference(actions, present(observations[at], "an observation").actions),
    );
    expect(Math.max(...differences)).toBeLessThan(SUMS);
  });
}
