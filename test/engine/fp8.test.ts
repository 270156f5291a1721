/** Bundles of fp8 weights on the engine: f16 is proved on a CPU, bf16 as float32 that is rounded; what the gate sees and refuses. */
import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { HALVES, type Half } from "../../src/bundle/build.ts";
import { DATA_TYPE, type ModelProto, type TensorProto } from "../../src/bundle/onnx-schema.ts";
import type { Bundle } from "../../src/engine/engine.ts";
import { present } from "../../src/std/assert.ts";
import { Failure } from "../../src/std/failure.ts";
import { bundleOf, episodeOf, largestDifference, MODEL_DIR } from "../bundle/built.ts";
import { roundedEverywhereOf } from "../bundle/rounded.ts";
import { Opened, rowsOf } from "./opened.ts";
import { changed, engineOfFile, rehearse } from "./wrong-provider.ts";

const NAMES = await readdir(join(MODEL_DIR, ".."));
const engine = await engineOfFile();

const fp8 = (model: string, compute: Half) => bundleOf(model, "fp8", { compute });

/** How far the rows of its episode are from those that NumPy computed with its rounded weights. */
async function difference(bundle: Bundle): Promise<number> {
  const opened = await Opened.with(engine, bundle, { slots: 1 });
  const place = bundle.manifest.memory === null ? {} : { slot: 0 };
  const differences: number[] = [];
  for (const { given, actions } of await episodeOf(bundle))
    differences.push(largestDifference(rowsOf(await opened.give(given, place)), actions));
  await opened.model.unload();
  return Math.max(...differences);
}

for (const name of NAMES) {
  test.each(HALVES)(
    `${name}, %s: its rows are within its tolerance, and differ by no small part of it`,
    async (compute) => {
      const bundle = await fp8(name, compute);
      const { tolerance } = bundle.manifest.parity;
      const largest = await difference(compute === "f16" ? bundle : await roundedEverywhereOf(bundle, compute));
      process.stderr.write(
        `  ${name} ${compute}: largest difference from NumPy ${largest.toExponential(2)} of ${tolerance}\n`,
      );
      expect(largest).toBeLessThan(tolerance);
      // A tolerance that is far from what rounding does would let mistakes through.
      expect(largest).toBeGreaterThan(tolerance / 8);
    },
  );
}

test("weights in a file of their own give the bits of those in the graphs", async () => {
  const inside = await fp8("molmoact2-yam", "f16");
  const outside = await bundleOf("molmoact2-yam", "fp8", { compute: "f16", inlineBytesMax: 0 });
  // The vectors are those of the noise of the other.
  const named = { ...outside, manifest: { ...outside.manifest, export_id: inside.manifest.export_id } };
  expect(await difference(named)).toBe(await difference(inside));
});

test("a device that takes the whole flow as one graph computes rows within the tolerance", async () => {
  const bundle = await fp8("molmoact2-yam", "f16");
  await rehearse({ device: "cuda:0" });
  const opened = await Opened.with(engine, bundle, { device: "cuda:0" });
  expect([opened.model.flow, opened.model.refused]).toEqual(["whole", []]);
  const [parity] = opened.model.parity;
  expect(parity).toBeLessThan(bundle.manifest.parity.tolerance);
  await opened.model.unload();
  await rehearse();
});

/** The last matrix of the graph, which few values pass after it. */
function lastMatrix({ graph }: ModelProto): TensorProto {
  return present(
    graph.initializer.findLast(({ dataType, dims }) => dataType === DATA_TYPE.f8 && dims.length === 2),
    "a matrix of float8",
  );
}

/** Makes the scale of one matrix twice as large. */
function scaleUp(model: ModelProto): void {
  const name = `${lastMatrix(model).name}.scale`;
  const tensor = present(
    model.graph.initializer.find((one) => one.name === name),
    name,
  );
  const [scale] = new Float16Array(Uint8Array.from(tensor.rawData).buffer);
  tensor.rawData = new Uint8Array(Float16Array.of(2 * present(scale, "a scale")).buffer);
}

/** Turns the signs of all weights of one matrix. */
function flip(model: ModelProto): void {
  const tensor = lastMatrix(model);
  tensor.rawData = tensor.rawData.map((code) => code ^ 0x80);
}

/** Cuts activations off at ±1.75, as a scale that is too small would. */
function saturate({ graph }: ModelProto): void {
  const node = present(
    graph.node.find(({ opType }) => opType === "QuantizeLinear"),
    "a rounding",
  );
  const tensor = present(
    graph.initializer.find(({ name }) => name === node.input[1]),
    "its scale",
  );
  tensor.rawData = new Uint8Array(Float16Array.of(2 ** -8).buffer);
}

const WRONG = [
  ["prefill.onnx", "a scale that is twice as large", scaleUp],
  ["denoise.onnx", "a scale that is twice as large", scaleUp],
  ["denoise.onnx", "a matrix of the wrong sign", flip],
  ["denoise.onnx", "activations that are cut off", saturate],
] as const;
test.each(WRONG)("%s: a device that computes with %s is refused", async (file, _, change) => {
  const bundle = await fp8("molmoact2-yam", "f16");
  await rehearse({ device: "cuda:0", graphs: { [file]: await changed(bundle, file, change) } });
  const refused = await engine.load({ bundle, replicas: 1, threads: 1, slots: undefined, device: "cuda:0" });
  await rehearse();
  expect(refused).toBeInstanceOf(Failure);
  expect(refused).toMatchObject({
    message: expect.stringMatching(/its rows are wrong: they differ by \d\.\de-?\d .* expected at most 2\.2e-1/),
  });
});

test("bf16 is refused on the CPU with the sentence that every build of bf16 has", async () => {
  const bundle = await fp8("molmoact2-yam", "bf16");
  const failure = await engine.load({ bundle, device: "cpu", replicas: 1, threads: 1, slots: undefined });
  expect(failure).toMatchObject({ message: expect.stringContaining("cpu: its graphs compute in bf16, for which") });
});
