/** Bundles of fp8 weights: what is rounded and how the graphs say so, what is told, what is refused. */
import { describe, expect, test } from "bun:test";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import { buildBundle, HALVES } from "../../src/bundle/build.ts";
import { show } from "../../src/bundle/describe.ts";
import { sha256 } from "../../src/bundle/digest.ts";
import { e4m3 } from "../../src/bundle/e4m3.ts";
import { scaleOf } from "../../src/bundle/float8.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import {
  DATA_TYPE,
  decodeModel,
  type ExternalTensorProto,
  encodeModel,
  type ModelProto,
  type NodeProto,
  type TensorProto,
} from "../../src/bundle/onnx-schema.ts";
import { readBundle } from "../../src/bundle/read.ts";
import { present } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";
import { buildInto, bundleOf, emptyDir, MODEL_DIR } from "./built.ts";
import { good } from "./damaged.ts";

const GRAPHS = ["prefill.onnx", "denoise.onnx"] as const;
const isBlock = (name: string) => /\.blocks\.\d+\..*\.weight$/.test(name) && !name.includes("adaptive");

async function graph(folder: string, file: string): Promise<ModelProto["graph"]> {
  return decodeModel(await readFile(join(folder, file))).graph;
}

/** The tensor `name`, and its bytes aligned for any type. */
function tensorOf({ initializer }: ModelProto["graph"], name: string): TensorProto & { readonly bytes: ArrayBuffer } {
  const tensor = present(
    initializer.find((one) => one.name === name),
    name,
  );
  return { ...tensor, bytes: Uint8Array.from(tensor.rawData).buffer };
}

const halves = (bytes: ArrayBuffer, compute: "f16" | "bf16") =>
  compute === "f16"
    ? [...new Float16Array(bytes)]
    : [...new Float32Array(Uint32Array.from(new Uint16Array(bytes), (word) => word << 16).buffer)];

/** Columns of `name` in the float32 bundle, where its matrices stand by themselves. */
function sideBySide(f32: ModelProto["graph"], name: string): Float32Array {
  const scope = name.slice(0, name.slice(0, -".weight".length).lastIndexOf(".") + 1);
  const parts = name.slice(scope.length, -".weight".length).split("+");
  const matrices = parts.map((part) => tensorOf(f32, `${scope}${part}.weight`));
  const rows = matrices.map(({ bytes, dims: [, columns] }) => ({ all: new Float32Array(bytes), to: Number(columns) }));
  const width = rows.reduce((sum, { to }) => sum + to, 0);
  const count = Number(matrices[0]?.dims[0]);
  const whole = new Float32Array(count * width);
  for (let row = 0, at = 0; row < count; row += 1)
    for (const { all, to } of rows) {
      whole.set(all.subarray(row * to, (row + 1) * to), at);
      at += to;
    }
  return whole;
}

for (const compute of HALVES) {
  describe(`a bundle of fp8 weights that computes in ${compute}`, async () => {
    const dir = join(await emptyDir(), compute);
    const manifest = await buildInto(dir, MODEL_DIR, "fp8", { compute });
    const { manifest: whole, paths } = await bundleOf("molmoact2-yam", "f32", { compute });
    const bytes = ({ files }: Manifest) => files.reduce((sum, { size }) => sum + size, 0);

    test("says so, with a tolerance of its own", async () => {
      const model = JSON.parse(await readFile(join(MODEL_DIR, "model.json"), "utf8")) as ModelFile;
      expect([manifest.weights, manifest.compute]).toEqual(["fp8", compute]);
      expect(manifest.parity.tolerance).toBe(present(model.fp8?.[compute], "fp8").tolerance);
      expect(Object.keys(manifest)).not.toContain("fp8");
      expect(show(manifest)).toContain(`weights  fp8\ncompute  ${compute}, a build for GPUs\n`);
    });

    test("is read like other bundles, and built again has the same bytes", async () => {
      expect(await readBundle(dir)).not.toBeInstanceOf(Problem);
      const again = join(await emptyDir(), "again");
      await buildInto(again, MODEL_DIR, "fp8", { compute });
      for (const { path } of [...manifest.files, { path: "manifest.json" }])
        expect(sha256(await readFile(join(again, path)))).toBe(sha256(await readFile(join(dir, path))));
    });

    test("is smaller than one whose weights are of the type that it computes in, by a byte for each of its blocks'", async () => {
      for (const file of GRAPHS) {
        const [one, other] = [await graph(dir, file), decodeModel(await readFile(paths.get(file) ?? "")).graph];
        const kept = one.initializer.filter(({ name }) => isBlock(name));
        expect(kept.length).toBeGreaterThan(10);
        for (const { name, rawData } of kept) expect(2 * rawData.length).toBe(tensorOf(other, name).rawData.length);
      }
      expect(bytes(manifest)).toBeLessThan(0.75 * bytes(whole));
    });

    test.each(GRAPHS)("%s: each matrix of its blocks is float8 with one scale, and nothing else is", async (file) => {
      const [fp8, f32] = [await graph(dir, file), await graph(good, file)];
      const kept = fp8.initializer.filter(({ dataType, dims }) => dataType === DATA_TYPE.f8 && dims.length > 0);
      expect(kept.map(({ name }) => name)).toEqual(
        fp8.initializer.map(({ name }) => name).filter((name) => isBlock(name)),
      );
      for (const { name, rawData } of kept) {
        const weights = sideBySide(f32, name);
        const scale = tensorOf(fp8, `${name}.scale`);
        const [value = Number.NaN, ...more] = halves(scale.bytes, compute);
        expect([scale.dataType, scale.dims, more]).toEqual([DATA_TYPE[compute], [], []]);
        // A power of two divides exactly: what is kept is the nearest float8 of each weight.
        expect(Number.isInteger(Math.log2(value))).toBe(true);
        expect(rawData).toEqual(e4m3(weights.map((weight) => weight / value)));
        const largest = Math.max(...weights.map(Math.abs)) / value;
        expect([largest <= 16, largest > 7.9]).toEqual([true, true]);
      }
    });

    test.each(GRAPHS)("%s: both sides of a product of blocks are dequantised just before it", async (file) => {
      const { node, initializer } = await graph(dir, file);
      const maker = (name: string | undefined) => node.find(({ output }) => output[0] === name);
      const types = new Map(initializer.map(({ name, dataType }) => [name, dataType]));
      const typesOf = ({ input }: NodeProto, first: number) => input.slice(first).map((name) => types.get(name));
      const [half, f8] = [DATA_TYPE[compute], DATA_TYPE.f8];
      const products = node.filter(
        ({ opType, input }) => opType === "MatMul" && maker(input[1])?.opType === "DequantizeLinear",
      );
      expect(new Set(products.map(({ input }) => maker(input[1])?.input[0]))).toEqual(
        new Set(initializer.map(({ name }) => name).filter(isBlock)),
      );
      for (const { input } of products) {
        const [left, right] = [present(maker(input[0]), "x"), present(maker(input[1]), "w")];
        const rounding = present(maker(left.input[0]), "what rounds x");
        expect([left.opType, rounding.opType]).toEqual(["DequantizeLinear", "QuantizeLinear"]);
        expect(left.input.slice(1)).toEqual(rounding.input.slice(1));
        expect([typesOf(left, 1), typesOf(right, 0)]).toEqual([
          [half, f8],
          [f8, half, f8],
        ]);
        expect([left.attribute, right.attribute, rounding.attribute]).toEqual([[], [], []]);
      }
      expect(node.filter(({ opType }) => opType === "QuantizeLinear")).toHaveLength(products.length);
    });
  });
}

describe("fp8 weights", () => {
  test("have a scale that is a power of two, by which the largest is more than 8 and at most 16", () => {
    for (const reach of [1e-6, 0.0135, 0.153, 1, 8, 8.0001, 16, 16.0001, 3000]) {
      const scale = scaleOf(reach);
      expect([reach, Number.isInteger(Math.log2(scale)), reach / scale > 8 && reach / scale <= 16]).toEqual([
        reach,
        true,
        true,
      ]);
    }
  });

  test("lie in the weight file of a large bundle as in the graphs of a small one", async () => {
    const dir = join(await emptyDir(), "file");
    const { manifest, paths } = await bundleOf("molmoact2-yam", "fp8", { compute: "f16" });
    const apart = await buildInto(dir, MODEL_DIR, "fp8", { compute: "f16", inlineBytesMax: 0 });
    expect(apart.weight_files).toEqual(["weights.bin"]);
    const file = await readFile(join(dir, "weights.bin"));
    for (const name of GRAPHS) {
      const inside = decodeModel(await readFile(present(paths.get(name), name))).graph;
      const outside = decodeModel(await readFile(join(dir, name)), "external").graph.initializer;
      const matrices = outside.filter(({ dataType, dims }) => dataType === DATA_TYPE.f8 && dims.length > 0);
      expect(matrices.length).toBeGreaterThan(10);
      for (const { name, externalData } of matrices as ExternalTensorProto[]) {
        const place = Object.fromEntries(externalData.map(({ key, value }) => [key, Number(value)]));
        const [offset, length] = [present(place.offset, "offset"), present(place.length, "length")];
        expect(file.subarray(offset, offset + length)).toEqual(Buffer.from(tensorOf(inside, name).bytes));
      }
    }
    expect(apart.parity).toEqual(manifest.parity);
  });

  test("are there for every model of the folder, to compute in either type", async () => {
    for (const name of await readdir(join(MODEL_DIR, "..")))
      for (const compute of HALVES)
        expect((await bundleOf(name, "fp8", { compute })).manifest).toMatchObject({ weights: "fp8", compute });
  });

  test("are covered by the export id, their scales too", async () => {
    const { manifest, paths } = await bundleOf("molmoact2-yam", "fp8", { compute: "f16" });
    const dir = join(await emptyDir(), "copy");
    await cp(join(present(paths.get("denoise.onnx"), "a graph"), ".."), dir, { recursive: true });
    const model = decodeModel(await readFile(join(dir, "denoise.onnx")));
    const scale = present(
      model.graph.initializer.find(({ name }) => name.endsWith(".weight.scale")),
      "a scale",
    );
    scale.rawData = scale.rawData.map((byte) => byte ^ 1);
    const bytes = encodeModel(model);
    await writeFile(join(dir, "denoise.onnx"), bytes);
    expect(await readBundle(dir)).toMatchObject({ message: expect.stringContaining("denoise.onnx") });
    const files = manifest.files.map((one) => (one.path === "denoise.onnx" ? { ...one, sha256: sha256(bytes) } : one));
    await writeFile(join(dir, "manifest.json"), JSON.stringify({ ...manifest, files }));
    expect(await readBundle(dir)).toMatchObject({ message: expect.stringContaining("export_id") });
  });

  test("of a model without a tolerance for them are not built, and the sentence says what is lacking", async () => {
    const model = join(await emptyDir(), "model");
    await cp(MODEL_DIR, model, { recursive: true });
    const facts = JSON.parse(await readFile(join(model, "model.json"), "utf8"));
    delete facts.fp8.bf16;
    await writeFile(join(model, "model.json"), JSON.stringify(facts));
    expect(await buildBundle(model, join(model, "out"), "fp8", { compute: "bf16" })).toMatchObject({
      message: expect.stringContaining("has no /fp8/bf16/tolerance; build this model with no --weights"),
    });
    expect(await readdir(model)).not.toContain("out");
    expect(await buildBundle(model, join(model, "out"), "fp8", { compute: "f16" })).not.toBeInstanceOf(Problem);
  });
});
