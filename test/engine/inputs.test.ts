/**
 * Inputs as published policies want them, each in a small model whose rows NumPy has computed. Times are integers or differ by row, and
 * a view may have no camera. The manifest says it, not the code.
 */
import { expect, test } from "bun:test";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { episodeOf, largestDifference } from "../bundle/built.ts";
import { variant, variantNames } from "../bundle/variants.ts";
import { Opened, refusal, rowsOf } from "./opened.ts";
import { rehearse, rehearsedEngine } from "./wrong-provider.ts";

const GPU = "cuda:0";
const engine = await rehearsedEngine();

for (const name of await variantNames()) {
  test(`${name}: the rows are those that NumPy computed, also in a batch and on a device with its own memory`, async () => {
    const bundle = await variant(name);
    const episode = await episodeOf(bundle);
    await rehearse({ device: GPU });
    for (const device of ["cpu", GPU]) {
      // Its replica has computed them in every row of a batch before the model is there.
      const opened = await Opened.with(engine, bundle, { device });
      for (const { given, actions } of episode) {
        const chunks = await Promise.all([opened.give(given), opened.give(given)]);
        for (const chunk of chunks)
          expect(largestDifference(rowsOf(chunk), actions)).toBeLessThan(bundle.manifest.parity.tolerance);
      }
      await opened.model.unload();
    }
  });
}

type Input = Manifest["graphs"]["prefill"]["inputs"][number];

/** Why the variant is refused once its inputs of a name are changed. */
async function refused(name: string, input: string, change: (input: Input) => void): Promise<string> {
  const { manifest, paths } = await variant(name);
  const changed = structuredClone(manifest);
  const all = Object.values(changed.graphs).flatMap(({ inputs }) => inputs);
  const found = all.filter((one) => one.name === input);
  expect(found).not.toEqual([]);
  found.forEach(change);
  return await refusal(engine, { manifest: changed, paths });
}

test("another number of buckets gives other rows", async () => {
  expect(await refused("groot", "timesteps", (input) => Object.assign(input, { buckets: 400 }))).toMatch(
    /its rows are wrong: they differ by/,
  );
});

test("the engine checks again what a manifest says of its inputs", async () => {
  const cases: [name: string, input: string, change: (input: Input) => void, expected: RegExp][] = [
    ["groot", "timesteps", (input) => delete input.buckets, /timesteps is a time in integers without buckets/],
    ["groot", "timesteps", (input) => (input.shape = [2]), /timesteps has not the type and size of its role, Time/],
    ["openpi", "tokens", (input) => (input.dtype = "f32"), /tokens has not the type and size of its role, Tokens/],
    ["openpi", "image_top", (input) => (input.cameras = ["side"]), /no input takes the pictures of top/],
    ["openpi", "image_top", (input) => (input.cameras = ["top", "side"]), /image_top is not F32 of/],
    ["groot", "state", (input) => (input.shape = ["batch", 3]), /state, of the state, is not f32 of 12 values/],
  ];
  for (const [name, input, change, expected] of cases) expect(await refused(name, input, change)).toMatch(expected);
});
