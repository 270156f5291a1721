/** Bundles built for GPUs on the engine: f16 is proved on the CPU, which has no bf16; frames as pixels; caches of two bytes. */
import { expect, test } from "bun:test";
import { cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import type { Options } from "../../src/bundle/build.ts";
import { HALVES } from "../../src/bundle/weights.ts";
import { bundleOf, changedModel, episodeDifference, episodeOf, MODEL_DIR } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import { roundedEverywhereOf } from "../bundle/rounded.ts";
import { VARIANTS, variantNames } from "../bundle/variants.ts";
import { episodeRows, Opened, refusal } from "./opened.ts";
import { rehearse, rehearsedEngine } from "./wrong-provider.ts";

const NAMES = await readdir(join(MODEL_DIR, ".."));
const engine = await rehearsedEngine();

/** Rows of its builds are compared with each other, and not with its vectors. */
function compared(facts: ModelFile): void {
  facts.half = { f16: { tolerance: 100 } };
}

const f16 = (model: string, options: Options = {}) => bundleOf(model, "f32", { compute: "f16", ...options });

const rows = (bundle: FlowBundle, as = bundle.manifest, device = "cpu") => episodeRows(engine, bundle, { as, device });
const goldenOf = async (bundle: FlowBundle) => (await episodeOf(bundle)).map(({ actions }) => actions);

for (const name of NAMES) {
  test(`${name}: its f16 rows are those of its rounded weights, within 1e-2 and not within the tolerance of float32`, async () => {
    const bundle = await f16(name);
    const expected = await goldenOf(bundle);
    const computed = await rows(bundle);
    const largest = episodeDifference(computed, expected);
    process.stderr.write(`  largest difference from NumPy ${largest.toExponential(2)}\n`);
    expect(largest).toBeLessThan(1e-2);
    expect(largest).toBeGreaterThan(1e-4);
  });
}

for (const name of NAMES) {
  test.each(HALVES)(
    `${name}: rows of %s, where each operator rounds its result, are within the bundle's tolerance`,
    async (compute) => {
      const bundle = await bundleOf(name, "f32", { compute });
      const expected = await goldenOf(bundle);
      const computed = await rows(await roundedEverywhereOf(bundle, compute));
      const largest = episodeDifference(computed, expected);
      const { tolerance } = bundle.manifest.parity;
      process.stderr.write(
        `  ${name} ${compute}: largest difference from NumPy ${largest.toExponential(2)} of ${tolerance}\n`,
      );
      expect(largest).toBeLessThan(tolerance);
      // A tolerance that is far from what rounding does would let mistakes through.
      expect(largest).toBeGreaterThan(tolerance / 20);
    },
  );
}

test.each(await variantNames())("inputs as in %s: the rows of f16 are near those of float32", async (name) => {
  const model = await changedModel(join(VARIANTS, name), compared);
  await cp(join(model, "parity/chunk.json"), join(model, "parity/compute-f16.json"));
  const whole = await bundleOf(model);
  const [one, other] = [await rows(whole), await rows(await f16(model), whole.manifest)];
  const largest = episodeDifference(one, other);
  process.stderr.write(`  ${name}: largest difference ${largest.toExponential(2)}\n`);
  expect(largest).toBeLessThan(1e-1);
  expect(largest).toBeGreaterThan(0);
});

/** A model whose pictures are fitted as `resize` says. */
function modelWith(resize: "pad" | "crop"): Promise<string> {
  return changedModel(MODEL_DIR, (facts) => {
    // Each channel is normalised by itself.
    Object.assign(facts.image, { resize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] });
    compared(facts);
  });
}

test.each(["pad", "crop"] as const)(
  "pixels that a graph normalises give the bits of frames that the engine normalises: %s",
  async (resize) => {
    const model = await modelWith(resize);
    const normalised = await f16(model, { frames: "f32" });
    const pixels = await f16(model);
    expect(pixels.manifest.graphs.prefill.inputs.find(({ role }) => role === "images")?.dtype).toBe("u8");
    expect(await rows(pixels, normalised.manifest)).toEqual(await rows(normalised));
  },
);

test("unrounded pictures stay float32 in a build for GPUs; one that takes pixels is refused", async () => {
  const model = await changedModel(MODEL_DIR, (facts) => {
    facts.image.filter = "torch-bilinear";
    compared(facts);
  });
  const { manifest } = await f16(model);
  expect(manifest.graphs.prefill.inputs.find(({ role }) => role === "images")?.dtype).toBe("f32");
  expect(f16(model, { frames: "u8" })).rejects.toThrow("/image/filter: found torch-bilinear, expected f32 images");
});

test("pixels give the same bits in an episode with memory, first and later frames", async () => {
  const normalised = await f16("dreamzero-astra-yam", { frames: "f32" });
  const pixels = await f16("dreamzero-astra-yam");
  // The vectors are those of the noise of the other.
  const rowsOfPixels = await rows(pixels);
  expect(await rows(normalised, pixels.manifest)).toEqual(rowsOfPixels);
});

test("memory and caches take half of the bytes, also on a device with its own memory", async () => {
  const held = async (bundle: FlowBundle) => {
    await rehearse({ device: "cuda:0" });
    const opened = await Opened.with(engine, bundle, { slots: 1, device: "cuda:0" });
    const [first] = await episodeOf(bundle);
    if (first === undefined) throw new Error("no observation");
    await opened.give(first.given, { slot: 0 });
    const [{ memory_bytes_held: memoryBytes }, { deviceBytes, copies }] = [engine.stats(), opened.model];
    await opened.model.unload();
    await rehearse();
    return { memoryBytes, deviceBytes, toDevice: copies.toDevice };
  };
  const [half, whole] = [await held(await f16("picasso-yam")), await held(await bundleOf("picasso-yam"))];
  expect(2 * half.memoryBytes).toBe(whole.memoryBytes);
  expect(half.deviceBytes / whole.deviceBytes).toBeLessThan(0.55);
  expect(half.toDevice / whole.toDevice).toBeLessThan(0.55);
});

test("frames as pixels are a quarter of the bytes to a device", async () => {
  const bytes = async (options: Options) => {
    await rehearse({ device: "cuda:0" });
    const bundle = await f16("pi0.5-yam", options);
    const manifest = { ...bundle.manifest, export_id: (await f16("pi0.5-yam")).manifest.export_id };
    const opened = await Opened.with(engine, { ...bundle, manifest }, { device: "cuda:0" });
    const { toDevice } = opened.model.copies;
    await opened.model.unload();
    await rehearse();
    return toDevice;
  };
  const frame = 3 * 112 * 112;
  expect((await bytes({ frames: "f32" })) - (await bytes({}))).toBe(3 * frame * 3);
});

test("a device that does not read the pixels anew is refused", async () => {
  await rehearse({ device: "cuda:0", stale: true });
  const bundle = await f16("molmoact2-yam");
  const reason = await refusal(engine, bundle, { device: "cuda:0" });
  expect(reason).toMatch(/its rows are wrong: .* expected at most 1\.0e-2/);
  await rehearse();
});

test("bf16 is refused on the CPU, by name and by auto, with a sentence that says what is computed there", async () => {
  const bundle = await bundleOf("molmoact2-yam", "f32", { compute: "bf16" });
  for (const device of ["cpu", "auto"]) {
    expect(await refusal(engine, bundle, { device })).toContain(
      "cpu: its graphs compute in bf16, for which ONNX Runtime has no kernels on a CPU: f16 is computed there",
    );
  }
});
