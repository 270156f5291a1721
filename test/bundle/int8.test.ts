/** Bundles of int8 weights: what is rounded, what is told, what is refused. */
import { describe, expect, test } from "bun:test";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import { buildBundle } from "../../src/bundle/build.ts";
import { show } from "../../src/bundle/describe.ts";
import { decodeModel, encodeModel, type ModelProto } from "../../src/bundle/onnx-schema.ts";
import { readBundle } from "../../src/bundle/read.ts";
import { quantized } from "../../src/bundle/smaller-weights.ts";
import { present } from "../../src/std/assert.ts";
import { sha256 } from "../../src/std/file-digest.ts";
import { Problem } from "../../src/std/problem.ts";
import { RandomStream } from "../../src/std/random.ts";
import { buildInto, emptyDir, MODEL_DIR } from "./built.ts";
import { manifest as exact, good } from "./damaged.ts";

const dir = join(await emptyDir(), "int8");
const manifest = await buildInto(dir, MODEL_DIR, "int8");
const GRAPHS = ["prefill.onnx", "denoise.onnx"] as const;

async function graph(folder: string, file: string): Promise<ModelProto["graph"]> {
  return decodeModel(await readFile(join(folder, file))).graph;
}

async function copyOf(): Promise<string> {
  const copy = join(await emptyDir(), "copy");
  await cp(dir, copy, { recursive: true });
  return copy;
}

async function modelWith(edit: (model: ModelFile) => void): Promise<string> {
  const model = join(await emptyDir(), "model");
  await cp(MODEL_DIR, model, { recursive: true });
  const file = join(model, "model.json");
  const facts = JSON.parse(await readFile(file, "utf8")) as ModelFile;
  edit(facts);
  await writeFile(file, JSON.stringify(facts));
  return model;
}

describe("rounding", () => {
  test("each weight is the nearest multiple of its column's scale, the largest of a column is 127 of them", () => {
    const columns = 7;
    const stream = new RandomStream("weights");
    const weights = Float32Array.from({ length: 300 * columns }, (_, at) => stream.signed() * 2 ** (at % columns));
    const { values, scales } = quantized(weights, columns);
    expect([values.length, scales.length]).toEqual([weights.length, columns]);
    for (const [at, weight] of weights.entries()) {
      const scale = present(scales[at % columns], "a scale");
      const multiple = present(values[at], "a value");
      expect(Math.abs(multiple * scale - weight)).toBeLessThanOrEqual(scale / 2 + 127 * scale * 2 ** -24);
      expect(multiple).not.toBe(-128);
    }
    for (let column = 0; column < columns; column += 1) {
      const sizes = values.filter((_, at) => at % columns === column).map(Math.abs);
      expect(Math.max(...sizes)).toBe(127);
    }
  });

  test("a column of zeros stays zeros, and its scale is a number", () => {
    const { values, scales } = quantized(new Float32Array([0, 3, 0, -3]), 2);
    expect([...values]).toEqual([0, 127, 0, -127]);
    expect([...scales]).toEqual([1, Math.fround(3 / 127)]);
  });
});

describe("a bundle of int8 weights", () => {
  test("says so and has its own tolerance; one of float32 says nothing and keeps its tolerance", async () => {
    const model = JSON.parse(await readFile(join(MODEL_DIR, "model.json"), "utf8")) as ModelFile;
    expect([manifest.weights, manifest.parity.tolerance]).toEqual(["int8", present(model.int8, "int8").tolerance]);
    expect([exact.weights, exact.parity.tolerance]).toEqual([undefined, 1e-4]);
    expect(Object.keys(manifest)).not.toContain("int8");
    expect(show(manifest)).toContain(`weights  int8\nparity   rows within ${manifest.parity.tolerance} of`);
    expect(show(exact)).toContain("weights  f32\nparity   rows within 0.0001 of");
  });

  test("is read like other bundles, and built again has the same bytes", async () => {
    expect(await readBundle(dir)).not.toBeInstanceOf(Problem);
    const again = join(await emptyDir(), "again");
    await buildInto(again, MODEL_DIR, "int8");
    for (const { path } of [...manifest.files, { path: "manifest.json" }]) {
      expect(sha256(await readFile(join(again, path)))).toBe(sha256(await readFile(join(dir, path))));
    }
  });

  test("has every matrix of its blocks as int8 with scales, and nothing else", async () => {
    for (const file of GRAPHS) {
      const [int8, f32] = [await graph(dir, file), await graph(good, file)];
      const matrix = (name: string) => /\.blocks\.\d+\..*\.weight$/.test(name) && !name.includes("adaptive");
      const rounded = f32.initializer.map(({ name }) => name).filter(matrix);
      expect(rounded.length).toBeGreaterThan(20);
      const kinds = new Map(int8.initializer.map(({ name, dataType }) => [name, dataType]));
      for (const { name } of f32.initializer)
        expect([name, kinds.get(name)]).toEqual([name, matrix(name) ? 3 : kinds.get(name)]);
      expect(int8.initializer.filter(({ dataType }) => dataType === 3).map(({ name }) => name)).toEqual(rounded);
      expect([...kinds.keys()].filter((name) => name.endsWith(".weight.scale"))).toEqual(
        rounded.map((name) => `${name}.scale`),
      );
      for (const name of rounded) {
        const of = (one: typeof f32, name: string) =>
          present(
            one.initializer.find((tensor) => tensor.name === name),
            name,
          );
        const bytes = new Uint8Array(of(f32, name).rawData);
        const expected = quantized(new Float32Array(bytes.buffer), Number(of(f32, name).dims[1]));
        expect(of(int8, name).rawData).toEqual(new Uint8Array(expected.values.buffer));
        expect(of(int8, `${name}.scale`).rawData).toEqual(new Uint8Array(expected.scales.buffer));
      }
    }
  });

  test("has an export id that covers each rounded weight and each scale", async () => {
    expect(manifest.export_id).not.toBe(exact.export_id);
    for (const file of GRAPHS) {
      const model = decodeModel(await readFile(join(dir, file)));
      for (const kind of [".output.weight", ".output.weight.scale"]) {
        const changed = structuredClone(model);
        const tensor = present(
          changed.graph.initializer.find(({ name }) => name.endsWith(kind)),
          kind,
        );
        tensor.rawData = tensor.rawData.slice();
        tensor.rawData[0] = present(tensor.rawData[0], "a byte") ^ 1;
        const copy = await copyOf();
        const bytes = encodeModel(changed);
        await writeFile(join(copy, file), bytes);
        expect(await readBundle(copy)).toMatchObject({ message: expect.stringContaining(file) });
        // Listed with its new digest, it is another export than the manifest says.
        const files = manifest.files.map((one) => (one.path === file ? { ...one, sha256: sha256(bytes) } : one));
        await writeFile(join(copy, "manifest.json"), JSON.stringify({ ...manifest, files }));
        expect(await readBundle(copy)).toMatchObject({ message: expect.stringContaining("export_id") });
      }
    }
  });
});

describe("a model that cannot be built so", () => {
  test("because it states no tolerance is told what it lacks", async () => {
    const model = await modelWith((facts) => delete facts.int8);
    const out = join(model, "out");
    expect(await buildBundle(model, out, "int8")).toMatchObject({
      message: expect.stringContaining("has no /int8/tolerance; build this model with --weights f32"),
    });
    expect(await readdir(model)).not.toContain("out");
    expect(await buildBundle(model, out)).not.toBeInstanceOf(Problem);
  });

  test("because nobody has computed its rows is told how they are made", async () => {
    const model = await modelWith(() => undefined);
    expect(await buildBundle(model, join(model, "out"), "int8")).toMatchObject({
      message: expect.stringMatching(/int8\.json cannot be read .*write it with test\/vectors/),
    });
  });

  test("because its tolerance is none", async () => {
    const model = await modelWith((facts) => (facts.int8 = { tolerance: 0 }));
    expect(await buildBundle(model, join(model, "out"))).toMatchObject({
      message: expect.stringContaining("/int8/tolerance: found 0"),
    });
  });
});
