/**
 * Inputs as published policies want them, each in a small model whose rows NumPy has computed: integer times, constants, masks of views and of
 * the prefix, positions, lengths, a state behind the rows or in parts. A manifest says it, no line of code does.
 */
import { expect, test } from "bun:test";
import { contradiction } from "../../src/bundle/consistency.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import type { Bundle } from "../../src/engine/engine.ts";
import { Failure } from "../../src/std/failure.ts";
import { episodeOf, largestDifference } from "../bundle/built.ts";
import { variant, variantNames } from "../bundle/variants.ts";
import { Opened, rowsOf } from "./opened.ts";
import { engineOfFile, rehearse } from "./wrong-provider.ts";

const GPU = "cuda:0";
const engine = await engineOfFile();

for (const name of await variantNames()) {
  test(`${name}: the rows are those that NumPy computed, also in a batch and on a device with memory of its own`, async () => {
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
async function refusal(name: string, input: string, change: (input: Input) => void): Promise<string> {
  const { manifest, paths } = await variant(name);
  const changed = structuredClone(manifest);
  const all = Object.values(changed.graphs).flatMap(({ inputs }) => inputs);
  const found = all.filter((one) => one.name === input);
  expect(found).not.toEqual([]);
  found.forEach(change);
  const bundle: Bundle = { manifest: changed, paths };
  const loaded = await engine.load({ bundle, device: "cpu", replicas: 1, threads: 1, slots: undefined });
  return loaded instanceof Failure ? loaded.message : "";
}

test("a number for each observation may have a dimension of its own or, where there is one observation at a time, none", async () => {
  const cases: [name: string, input: string, shape: Input["shape"], batch: number][] = [
    ["groot", "timesteps", ["batch"], 2],
    ["groot", "embodiment_id", ["batch"], 2],
    ["edge", "prefix_length", [1], 1],
    ["rtc-length", "prefix_count", [1], 1],
  ];
  for (const [name, input, shape, batch] of cases) {
    // A batch of more than one row would have one number for all of them.
    if (batch === 1)
      expect(contradiction(await reshaped(name, input, shape, 2))).toContain("/shape: found [1], expected");
    const manifest = await reshaped(name, input, shape, batch);
    expect(contradiction(manifest)).toBeUndefined();
    const { paths } = await variant(name);
    const opened = await Opened.with(engine, { manifest, paths });
    expect(Math.max(...opened.model.parity)).toBeLessThan(manifest.parity.tolerance);
    await opened.model.unload();
  }
});

/** The variant's manifest with another shape of one input. */
async function reshaped(name: string, input: string, shape: Input["shape"], batch: number): Promise<Manifest> {
  const { manifest } = await variant(name);
  const all = Object.values(manifest.graphs).flatMap(({ inputs }) => inputs);
  for (const one of all) if (one.name === input) one.shape = shape;
  return { ...manifest, batch };
}

test("another value of a constant, of buckets or of what is counted gives other rows", async () => {
  const cases: [name: string, input: string, change: (input: Input) => void][] = [
    ["groot", "embodiment_id", (input) => Object.assign(input, { values: [1] })],
    ["groot", "timesteps", (input) => Object.assign(input, { buckets: 400 })],
    ["edge", "position_ids", (input) => Object.assign(input, { counts: "valid" })],
    ["parts", "state_joint_position", (input) => input.columns?.reverse()],
    ["openpi", "mask_top", (input) => Object.assign(input, { role: "constant", cameras: undefined, values: [false] })],
  ];
  for (const [name, input, change] of cases)
    expect(await refusal(name, input, change)).toMatch(/its rows are wrong: they differ by/);
});

test("the engine checks again what a manifest says of its inputs", async () => {
  const cases: [name: string, input: string, change: (input: Input) => void, expected: RegExp][] = [
    ["groot", "timesteps", (input) => delete input.buckets, /timesteps is a time in integers without buckets/],
    ["groot", "timesteps", (input) => (input.shape = [2]), /timesteps has not the type and size of its role, Time/],
    ["groot", "embodiment_id", (input) => (input.values = [1, 2]), /embodiment_id has 2 values for a tensor of 1/],
    ["groot", "embodiment_id", (input) => delete input.values, /embodiment_id has 0 values for a tensor of 1/],
    ["openpi", "tokens", (input) => (input.dtype = "f32"), /tokens has not the type and size of its role, Tokens/],
    ["openpi", "image_top", (input) => (input.cameras = ["side"]), /no input takes the pictures of top/],
    ["openpi", "image_top", (input) => (input.cameras = ["top", "side"]), /image_top is not F32 of/],
    [
      "parts",
      "state_joint_position",
      (input) => (input.columns = ["elbow"]),
      /state_joint_position has elbow, which is no column/,
    ],
    [
      "parts",
      "state_joint_position",
      (input) => delete input.columns,
      /state_joint_position, of the state, is not f32 of 12 values/,
    ],
    [
      "parts",
      "state_joint_position",
      (input) => input.columns?.pop(),
      /state_joint_position, of the state, is not f32 of 2 values/,
    ],
    ["edge", "prefix_length", (input) => (input.dtype = "bool"), /prefix_length has not the type and size of its role/],
    ["edge", "position_ids", (input) => (input.shape = ["batch", 3]), /position_ids has not the type and size/],
  ];
  for (const [name, input, change, expected] of cases) expect(await refusal(name, input, change)).toMatch(expected);
});
