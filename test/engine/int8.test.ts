/** A bundle of int8 weights on the engine: its own parity, what it refuses, and the same bits for the same observation. */
import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ModelProto, TensorProto } from "../../src/bundle/onnx-schema.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, largestDifference, MODEL_DIR } from "../bundle/built.ts";
import { Opened, ok, refusal, rowsOf } from "./opened.ts";
import { changed, rehearse, rehearsedEngine } from "./wrong-provider.ts";

const GRAPHS = ["prefill.onnx", "denoise.onnx"] as const;
const INT8 = 3;
const engine = await rehearsedEngine();
const bundle = await bundleOf("molmoact2-yam", "int8");

/** The last matrix of the graph, which few values pass after it. */
function lastMatrix({ graph }: ModelProto): TensorProto {
  return present(
    graph.initializer.findLast(({ dataType }) => dataType === INT8),
    "an int8 matrix",
  );
}

/** Turns the signs of the weights of one output, the first. */
function flipColumn(model: ModelProto): void {
  const tensor = lastMatrix(model);
  const values = new Int8Array(new Uint8Array(tensor.rawData).buffer);
  for (let at = 0; at < values.length; at += Number(tensor.dims[1])) values[at] = -present(values[at], "a weight");
  tensor.rawData = new Uint8Array(values.buffer);
}

/** Makes each scale of one matrix twice as large. A tenth is within what the rounding of activations changes. */
function scaleUp(model: ModelProto): void {
  const name = `${lastMatrix(model).name}.scale`;
  const tensor = present(
    model.graph.initializer.find((one) => one.name === name),
    name,
  );
  const scales = new Float32Array(new Uint8Array(tensor.rawData).buffer).map((scale) => scale * 2);
  tensor.rawData = new Uint8Array(scales.buffer);
}

/** Products of two neighbours saturate at 16 bits on a processor without VNNI, unless it is told not to: weights lose a bit or more. */
function saturate({ graph }: ModelProto): void {
  for (const tensor of graph.initializer.filter(({ dataType }) => dataType === INT8)) {
    const values = new Int8Array(new Uint8Array(tensor.rawData).buffer).map((value) =>
      Math.max(-64, Math.min(64, value)),
    );
    tensor.rawData = new Uint8Array(values.buffer);
  }
}

/** A device that has no kernel for a product with int8. */
function rename({ graph }: ModelProto): void {
  for (const node of graph.node) node.opType = node.opType.replace("DynamicQuantizeMatMul", "NoSuchProduct");
}

/** The device computes the bundle wrongly in one graph: it is refused by name, and `auto` takes the CPU. */
async function expectRefused(file: string, change: (model: ModelProto) => void, reason: RegExp): Promise<void> {
  await rehearse({ device: "cuda:0", graphs: { [file]: await changed(bundle, file, change) } });
  expect(await refusal(engine, bundle, { device: "cuda:0" })).toMatch(reason);
  const { model: fallen } = await Opened.with(engine, bundle, { device: "auto" });
  expect(fallen.device).toBe("cpu");
  expect(fallen.refused.find(({ device }) => device === "cuda:0")?.reason).toMatch(reason);
  await fallen.unload();
  await rehearse();
}

for (const name of await readdir(join(MODEL_DIR, ".."))) {
  test(`${name}: its rows are those of its rounded weights, within its tolerance and not within that of float32`, async () => {
    const one = await Opened.with(engine, await bundleOf(name, "int8"), { slots: 2 });
    const { parity } = one.bundle.manifest;
    const episode = await one.episode(1);
    const differences = episode.map(({ chunk, golden }) => largestDifference(rowsOf(chunk), golden.actions));
    const largest = Math.max(...differences);
    process.stderr.write(`  largest difference from NumPy ${largest.toExponential(2)} of ${parity.tolerance}\n`);
    expect(largest).toBeLessThan(parity.tolerance);
    expect(largest).toBeGreaterThan(1e-4);
    expect(one.model.parity).toHaveLength(differences.length);
    await one.model.unload();
  });
}

const WRONG_ROWS = /its rows are wrong: they differ by \d\.\de-?\d .* expected at most 1\.0e-1/;

for (const file of GRAPHS) {
  test(`${file}: a column of weights with the wrong sign, scales twice as large, and sums that saturate are refused`, async () => {
    for (const change of [flipColumn, scaleUp, saturate]) await expectRefused(file, change, WRONG_ROWS);
  });

  test(`${file}: a device without the operator is refused, and auto takes the CPU`, async () => {
    await expectRefused(file, rename, /NoSuchProduct/);
  });
}

test("inputs that a device does not bind again are refused", async () => {
  await rehearse({ device: "cuda:0", stale: true });
  expect(await refusal(engine, bundle, { device: "cuda:0" })).toMatch(WRONG_ROWS);
  await rehearse();
});

test("the same observation has the same bits: again, whatever ran between, on any number of threads, and after a restart", async () => {
  const [golden] = await episodeOf(bundle);
  const { given } = present(golden, "an observation");
  const opened = await Opened.with(engine, bundle);
  const first = await opened.give(given);
  await opened.give({ ...given, instruction: "open the drawer", seed: 5 });
  expect((await opened.give(given)).actions).toEqual(first.actions);
  for (const threads of [2, 3, undefined]) {
    const other = await Opened.with(engine, bundle, { threads });
    for (const seed of [given.seed, 5]) {
      const [one, two] = [await opened.give({ ...given, seed }), await other.give({ ...given, seed })];
      expect(two.actions).toEqual(one.actions);
    }
    await other.model.unload();
  }
  await using restarted = await Opened.with(
    ok(await openEngine({ decodeThreads: 1 })),
    await bundleOf("molmoact2-yam", "int8"),
  );
  expect((await restarted.give(given)).actions).toEqual(first.actions);
});
