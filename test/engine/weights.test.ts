/** Bundles with a weight file on the engine: right rows, replicas that share them, and files that are not as they were. */
import { expect, test } from "bun:test";
import { cp, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildBundle } from "../../src/bundle/build.ts";
import { decodeModel, encodeModel } from "../../src/bundle/onnx-schema.ts";
import type { Bundle } from "../../src/bundle/read.ts";
import { readBundle } from "../../src/bundle/read.ts";
import { WEIGHT_FILE } from "../../src/bundle/weight-file.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, emptyDir, episodeOf, largestDifference, MODEL_DIR, parityOf } from "../bundle/built.ts";
import { engineOfFile, Opened, ok, refusal, rowsOf } from "./opened.ts";

const engine = await engineOfFile();
const bundle = await bundleOf("pi0.5-yam", "bf16");

/** A copy whose files may be changed after it was verified. */
async function copyOf(): Promise<{ copy: Bundle; dir: string; file: string }> {
  const dir = join(await emptyDir(), "copy");
  await cp(join(present(bundle.paths.get("manifest.json") ?? bundle.paths.get("norm.json"), "a path"), ".."), dir, {
    recursive: true,
  });
  return { copy: ok(await readBundle(dir)), dir, file: join(dir, WEIGHT_FILE) };
}

test("the rows of bf16 weights are those that NumPy computes of them, on every replica, and the same bits each time", async () => {
  const opened = await Opened.with(engine, bundle, { replicas: 2 });
  expect(opened.model.replicas).toBe(2);
  const { given, actions } = await parityOf(bundle);
  // Both replicas at once, twice.
  const chunks = await Promise.all(Array.from({ length: 4 }, () => opened.give(given)));
  for (const chunk of chunks) {
    expect(largestDifference(rowsOf(chunk), actions)).toBeLessThan(1e-4);
    expect(chunk.actions).toEqual(present(chunks[0], "a chunk").actions);
  }
  await opened.model.unload();
});

test("replicas that share their weights compute what one alone computes, bit for bit, at the same time", async () => {
  for (const name of ["molmoact2-yam", "dreamzero-astra-yam"]) {
    const small = await bundleOf(name);
    const remembers = small.manifest.memory !== null;
    const [first] = await episodeOf(small);
    const { given } = present(first, "an observation");
    const alone = await Opened.with(engine, small, { slots: 4 });
    const expected = await alone.give(given, remembers ? { slot: 0 } : {});
    await alone.model.unload();
    const several = await Opened.with(engine, small, { replicas: 3, slots: 4 });
    const slots = Array.from({ length: 12 }, (_, at) => (remembers ? { slot: at } : {}));
    for (const { actions } of await Promise.all(slots.map((slot) => several.give(given, slot))))
      expect(actions).toEqual(expected.actions);
    await several.model.unload();
  }
});

test("float32 weights in a weight file give the rows of those in the graphs, bit for bit", async () => {
  for (const name of ["molmoact2-yam", "dreamzero-astra-yam"]) {
    const dir = join(await emptyDir(), "outside");
    ok(await buildBundle(join(MODEL_DIR, "..", name), dir, "f32", { inlineBytesMax: 1 << 16 }));
    const [inline, outside] = [await bundleOf(name), ok(await readBundle(dir))];
    expect(outside.manifest.weight_files).toEqual([WEIGHT_FILE]);
    // The noise depends on the export: for this test both have that of the first.
    const manifest = { ...outside.manifest, export_id: inline.manifest.export_id };
    const rows: Float32Array[] = [];
    for (const one of [inline, { ...outside, manifest }]) {
      const opened = await Opened.with(engine, one, { slots: 2 });
      for (const { chunk } of await opened.episode(1)) rows.push(chunk.actions);
      await opened.model.unload();
    }
    const half = rows.length / 2;
    for (let at = 0; at < half; at += 1) expect(rows[at + half]).toEqual(present(rows[at], "rows"));
  }
});

test("a weight file that was cut, grew or went between its verification and its load is refused with its name", async () => {
  const { copy, file } = await copyOf();
  const size = (await readFile(file)).length;
  for (const found of [size - 4096, size + 1, 0]) {
    await truncate(file, found);
    expect(await refusal(engine, copy)).toContain(`${file} has ${found} bytes, expected ${size}`);
  }
  await rm(file);
  expect(await refusal(engine, copy)).toContain(`${file} cannot be opened: No such file or directory`);
});

test("a graph that names a place outside its weight file, another file or a wrong length is refused", async () => {
  for (const [key, value, message] of [
    ["offset", String(2 ** 40), `reaches over the end of ${WEIGHT_FILE}`],
    ["offset", String(2 ** 63), `reaches over the end of ${WEIGHT_FILE}`],
    ["offset", "7", "begins at byte 7, expected a multiple of"],
    ["length", "4096", "has not the length of its shape"],
    ["location", "../../secret", "lies in ../../secret, which the manifest does not name"],
  ] as const) {
    const { copy, dir } = await copyOf();
    const path = join(dir, "denoise.onnx");
    const model = decodeModel(await readFile(path), "external");
    const tensor = present(
      model.graph.initializer.find((one) => "dataLocation" in one && one.dataLocation === 1),
      "a tensor in the file",
    );
    if (!("externalData" in tensor)) throw new Error("it lies elsewhere");
    for (const entry of tensor.externalData) if (entry.key === key) entry.value = value;
    await writeFile(path, encodeModel(model));
    const text = await refusal(engine, copy);
    expect(text).toContain(`tensor ${tensor.name} ${message}`);
  }
});

test("a bundle that is replaced or deleted while it is served goes on with the weights that were verified", async () => {
  const { copy, dir, file } = await copyOf();
  const opened = await Opened.with(engine, copy);
  const { given } = await parityOf(copy);
  const before = await opened.give(given);
  const other = `${file}.other`;
  await writeFile(other, (await readFile(file)).fill(0));
  await rename(other, file);
  expect((await opened.give(given)).actions).toEqual(before.actions);
  await rm(dir, { recursive: true });
  expect((await opened.give(given)).actions).toEqual(before.actions);
  await opened.model.unload();
});

test("a model that is loaded, unloaded and loaded again maps its weights each time, and leaves no mapping behind", async () => {
  const mappings = async () =>
    (await readFile("/proc/self/maps", "utf8")).split("\n").filter((line) => line.endsWith(WEIGHT_FILE)).length;
  const before = await mappings();
  for (let time = 0; time < 3; time += 1) {
    const { model } = await Opened.with(engine, bundle, { replicas: 2 });
    expect(await mappings()).toBe(before + 1);
    await model.unload();
  }
  expect(await mappings()).toBe(before);
});
