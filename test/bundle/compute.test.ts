/** Bundles built for GPUs: which numbers are of which type, what is told, what is refused. */
import { describe, expect, test } from "bun:test";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildBundle } from "../../src/bundle/build.ts";
import { contradiction } from "../../src/bundle/consistency.ts";
import { show } from "../../src/bundle/describe.ts";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { DATA_TYPE, decodeModel, type ModelProto, type NodeProto } from "../../src/bundle/onnx-schema.ts";
import { readBundle } from "../../src/bundle/read.ts";
import { keptAs } from "../../src/bundle/values.ts";
import { HALVES } from "../../src/bundle/weights.ts";
import { present } from "../../src/std/assert.ts";
import { sha256 } from "../../src/std/file-digest.ts";
import { Problem } from "../../src/std/problem.ts";
import { buildInto, bundleOf, emptyDir, MODEL_DIR } from "./built.ts";
import { manifest as exact, good } from "./damaged.ts";
import { traced } from "./rounded.ts";

const NAMES = await readdir(join(MODEL_DIR, ".."));
const GRAPHS = ["prefill.onnx", "denoise.onnx"] as const;

async function graph(folder: string, file: string): Promise<ModelProto["graph"]> {
  return decodeModel(await readFile(join(folder, file))).graph;
}

const typed = (nodes: readonly NodeProto[], operator: string, typeOf: (value: string) => number) =>
  nodes.filter(({ opType }) => opType === operator).map(({ name, input }) => [name, input.map(typeOf)] as const);

for (const compute of HALVES) {
  describe(`a bundle that computes in ${compute}`, async () => {
    const dir = join(await emptyDir(), compute);
    const manifest = await buildInto(dir, MODEL_DIR, "f32", { compute });
    const half = DATA_TYPE[compute];

    test("says so and has its own tolerance; another one says nothing", () => {
      expect([manifest.compute, manifest.weights]).toEqual([compute, undefined]);
      expect(manifest.parity.tolerance).toBe({ f16: 0.01, bf16: 0.05 }[compute]);
      expect([exact.compute, exact.parity.tolerance]).toEqual([undefined, 1e-4]);
      expect(show(manifest)).toContain(`weights  ${compute}\ncompute  ${compute}, a build for GPUs\n`);
      expect(show(exact)).not.toContain("compute");
    });

    test("is read like other bundles, is half as large, and built again has the same bytes", async () => {
      expect(await readBundle(dir)).not.toBeInstanceOf(Problem);
      const again = join(await emptyDir(), "again");
      await buildInto(again, MODEL_DIR, "f32", { compute });
      for (const { path } of manifest.files)
        expect(sha256(await readFile(join(again, path)))).toBe(sha256(await readFile(join(dir, path))));
      const bytes = ({ files }: Manifest) => files.reduce((sum, { size }) => sum + size, 0);
      expect(bytes(manifest) / bytes(exact)).toBeLessThan(0.6);
    });

    test("has caches of that type, frames as pixels, and a latent and a velocity of float32", () => {
      const { prefill, denoise } = manifest.graphs;
      const types = (ports: typeof prefill.inputs | typeof prefill.outputs, role: string) =>
        new Set(ports.filter((port) => port.role === role && port.name !== "prefix_mask").map(({ dtype }) => dtype));
      expect([...types(prefill.outputs, "cache"), ...types(denoise.inputs, "cache")]).toEqual([compute, compute]);
      expect([...types(prefill.inputs, "images")]).toEqual(["u8"]);
      for (const role of ["latent", "time"]) expect([...types(denoise.inputs, role)]).toEqual(["f32"]);
      expect([...types(denoise.outputs, "velocity")]).toEqual(["f32"]);
    });

    test.each(GRAPHS)(
      "%s: products of blocks are of that type; softmax, patches and the flow's ends are of float32",
      async (file) => {
        const { nodes, typeOf } = traced(await graph(dir, file));
        const norms = ["LayerNormalization", "RMSNormalization", "Gelu", "RotaryEmbedding"];
        for (const operator of norms)
          for (const [, inputs] of typed(nodes, operator, typeOf)) for (const one of inputs) expect(one).toBe(half);
        for (const [, [type]] of [...typed(nodes, "Softmax", typeOf), ...typed(nodes, "Conv", typeOf)])
          expect(type).toBe(DATA_TYPE.f32);
        const products = typed(nodes, "MatMul", typeOf);
        expect(products.length).toBeGreaterThan(10);
        for (const [name, inputs] of products) {
          const single = /^(expert\.)?(action_(in|out)|time_(in|out)|state_in)\.|adaptive|^expert\.matmul/.test(name);
          expect([name, ...inputs]).toEqual([name, ...(single ? [DATA_TYPE.f32, DATA_TYPE.f32] : [half, half])]);
        }
      },
    );

    test("has the nearest values of that type to the float32 bundle's weights", async () => {
      const [other, f32] = [await graph(dir, "denoise.onnx"), await graph(good, "denoise.onnx")];
      const values = ({ initializer }: typeof other, name: string) =>
        present(
          initializer.find((tensor) => tensor.name === name),
          name,
        ).rawData;
      const name = "expert.blocks.0.output.weight";
      const expected = keptAs(compute, new Float32Array(Uint8Array.from(values(f32, name)).buffer));
      const kind = compute === "f16" ? Float16Array : Uint16Array;
      expect([...new kind(Uint8Array.from(values(other, name)).buffer)]).toEqual([...expected]);
      expect(values(other, "expert.action_in.weight")).toEqual(values(f32, "expert.action_in.weight"));
    });

    test("reads keys and values of the cache where they lie: nothing puts them together", async () => {
      const { node, input } = await graph(dir, "denoise.onnx");
      const caches = new Set(input.map(({ name }) => name).filter((name) => name.startsWith("past_")));
      const readers = node.filter((one) => one.input.some((name) => caches.has(name)));
      expect(new Set(readers.map(({ opType }) => opType))).toEqual(new Set(["Transpose", "MatMul"]));
    });
  });
}

describe("a build for GPUs", () => {
  test("is there for every model of the folder", async () => {
    for (const name of NAMES)
      for (const compute of HALVES) expect((await bundleOf(name, "f32", { compute })).manifest.compute).toBe(compute);
  });

  test("of a model without a tolerance for it says what it lacks", async () => {
    const model = join(await emptyDir(), "model");
    await cp(join(MODEL_DIR, "../pi0.5-yam"), model, { recursive: true });
    const facts = JSON.parse(await readFile(join(model, "model.json"), "utf8"));
    delete facts.half.bf16;
    await writeFile(join(model, "model.json"), JSON.stringify(facts));
    expect(await buildBundle(model, join(model, "out"), "f32", { compute: "bf16" })).toMatchObject({
      message: expect.stringContaining("has no /half/bf16/tolerance; build this model with no --compute"),
    });
    expect(await buildBundle(model, join(model, "out"), "f32", { compute: "f16" })).not.toBeInstanceOf(Problem);
  });

  test("whose images are neither normalised planes nor planes of pixels is refused", async () => {
    const { manifest } = await bundleOf("molmoact2-yam", "f32", { compute: "f16" });
    expect(contradiction(manifest)).toBeUndefined();
    const images = (one: Manifest) =>
      present(
        one.graphs.prefill.inputs.find(({ role }) => role === "images"),
        "images",
      );
    const edits: [Partial<ReturnType<typeof images>>, string][] = [
      [{ dtype: "i64" }, "/graphs/prefill/inputs/0/dtype: found i64, expected f32"],
      [{ shape: ["batch", 3, 112, 112, 3] }, "/graphs/prefill/inputs/0/shape: found"],
    ];
    for (const [port, expected] of edits) {
      const copy = structuredClone(manifest);
      Object.assign(images(copy), port);
      expect(contradiction(copy)).toContain(expected);
    }
  });
});
