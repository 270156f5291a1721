/** Work is counted by hand here, node by node, and in the shipped bundles by the sizes of their architecture. */
import { describe, expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Architecture, WorldArchitecture } from "../../../src/bundle/architecture.ts";
import { HALVES } from "../../../src/bundle/build.ts";
import { decodeModel, encodeModel } from "../../../src/bundle/onnx-schema.ts";
import { graphWork } from "../../../src/bundle/workload/count.ts";
import { present } from "../../../src/std/assert.ts";
import { bundleOf, MODEL_DIR } from "../built.ts";

const F32 = 1;
const F16 = 10;
const BF16 = 16;
const I64 = 7;

type Dims = readonly (number | string)[];
const port = (name: string, dims: Dims, elemType = F32) => ({
  name,
  type: {
    tensorType: {
      elemType,
      shape: { dim: dims.map((dim) => (typeof dim === "string" ? { dimParam: dim } : { dimValue: BigInt(dim) })) },
    },
  },
});
const weight = (name: string, dims: readonly number[], dataType = F32) => {
  const bytes = dims.reduce((size, dim) => size * dim, 1) * { [F32]: 4, [F16]: 2, [BF16]: 2, [I64]: 8 }[dataType as 1];
  return { name, dims: dims.map(BigInt), dataType, rawData: new Uint8Array(bytes) };
};
const node = (opType: string, input: string[], output: string[], ints: Record<string, number> = {}) => ({
  name: output[0] ?? "",
  opType,
  input,
  output,
  attribute: Object.entries(ints).map(([name, i]) => ({ name, type: 2, i: BigInt(i) })),
});

function workOf(
  parts: {
    input: ReturnType<typeof port>[];
    output: ReturnType<typeof port>[];
    node: ReturnType<typeof node>[];
    initializer?: ReturnType<typeof weight>[];
  },
  sizes: Record<string, number> = {},
) {
  const graph = { name: "g", initializer: [], ...parts };
  const bytes = encodeModel({ irVersion: 11n, producerName: "test", docString: "", opsetImport: [], graph });
  return graphWork(decodeModel(bytes, "external"), sizes);
}

describe("the work of a graph", () => {
  test("is two for each multiply-add of a product, at the size of its batch, and its weights are read once", () => {
    const parts = {
      input: [port("x", ["batch", 3, 4])],
      initializer: [weight("w", [4, 5])],
      node: [node("MatMul", ["x", "w"], ["y"])],
      output: [port("y", ["batch", 3, 5])],
    };
    expect(workOf(parts, { batch: 2 })).toEqual({
      flops: { f32: 2 * 2 * 3 * 4 * 5 },
      weightBytes: 4 * 20,
      portBytes: 4 * (2 * 3 * 4 + 2 * 3 * 5),
      unknown: [],
    });
    expect(workOf(parts, { batch: 8 })).toMatchObject({ flops: { f32: 960 }, weightBytes: 80 });
  });

  test("counts a bf16 weight as it is kept, and its product by the type that is multiplied", () => {
    const parts = {
      input: [port("x", [3, 4])],
      initializer: [weight("w", [4, 5], BF16)],
      node: [node("Cast", ["w"], ["wide"], { to: F32 }), node("MatMul", ["x", "wide"], ["y"])],
      output: [port("y", [3, 5])],
    };
    expect(workOf(parts)).toMatchObject({ flops: { f32: 120 }, weightBytes: 40 });
    const half = { ...parts, node: [node("Cast", ["x"], ["h"], { to: BF16 }), node("MatMul", ["h", "w"], ["y"])] };
    expect(workOf(half)).toMatchObject({ flops: { bf16: 120 }, weightBytes: 40 });
  });

  test("leaves out what is computed once, when the graph is loaded, and counts its result as a weight", () => {
    const parts = {
      input: [port("x", [2, 3])],
      initializer: [weight("a", [2, 4]), weight("b", [4, 3])],
      node: [node("MatMul", ["a", "b"], ["c"]), node("Add", ["x", "c"], ["y"])],
      output: [port("y", [2, 3])],
    };
    expect(workOf(parts)).toMatchObject({ flops: {}, weightBytes: 4 * 6 });
  });

  test("reads of a table the rows that are asked for", () => {
    const parts = {
      input: [port("ids", [3], I64)],
      initializer: [weight("table", [1000, 8])],
      node: [node("Gather", ["table", "ids"], ["y"], { axis: 0 })],
      output: [port("y", [3, 8])],
    };
    expect(workOf(parts).weightBytes).toBe(4 * 3 * 8);
  });

  test("counts attention that is one operator as the two products that it is, over the keys before it too", () => {
    const [q, k] = [port("q", [1, 4, 5, 16]), port("k", [1, 2, 7, 16])];
    const v = port("v", [1, 2, 7, 16]);
    const whole = workOf({
      input: [q, k, v],
      node: [node("Attention", ["q", "k", "v"], ["y"])],
      output: [port("y", [1, 4, 5, 16])],
    });
    expect(whole.flops).toEqual({ f32: 2 * 2 * 4 * 5 * 7 * 16 });
    const past = workOf({
      input: [q, k, v, port("pk", [1, 2, 10, 16]), port("pv", [1, 2, 10, 16])],
      node: [node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y"])],
      output: [port("y", [1, 4, 5, 16])],
    });
    expect(past.flops).toEqual({ f32: 2 * 2 * 4 * 5 * 17 * 16 });
  });

  test("names operators that it does not know, and what hangs on them is not counted", () => {
    const told = workOf({
      input: [port("x", [2, 3])],
      initializer: [weight("w", [3, 3])],
      node: [node("Mystery", ["x"], ["m"]), node("MatMul", ["m", "w"], ["y"])],
      output: [port("y", [2, 3])],
    });
    expect(told).toMatchObject({ flops: {}, unknown: ["MatMul", "Mystery"] });
  });
});

describe("the shipped bundles", () => {
  const names = ["dreamzero-astra-yam", "isaac-0.5-yam", "molmoact2-yam", "pi0.5-yam", "picasso-yam", "rho-yam"];
  const read = async (name: string, graph: string) =>
    decodeModel(await readFile(join(MODEL_DIR, "../../dist/models", name, `${graph}.onnx`)), "external");

  /** Names of the graphs of a bundle: one with memory has `extend`. */
  const graphsOf = async (name: string) => {
    const files = await readdir(join(MODEL_DIR, "../../dist/models", name));
    return files.filter((file) => file.endsWith(".onnx")).map((file) => file.slice(0, -".onnx".length));
  };

  test.each(names)("%s is counted whole: no operator is unknown", async (name) => {
    for (const graph of await graphsOf(name)) {
      const { flops, weightBytes, portBytes, unknown } = graphWork(await read(name, graph), {
        batch: 1,
        prompt: 96,
        prefix: 288,
      });
      expect(unknown).toEqual([]);
      for (const figure of [flops.f32, weightBytes, portBytes]) expect(figure).toBeGreaterThan(1e4);
    }
  });

  test("molmoact2's tower and prefix have the products that their sizes say", async () => {
    const { architecture } = JSON.parse(await readFile(join(MODEL_DIR, "model.json"), "utf8")) as {
      architecture: Architecture;
    };
    const { vision: v, language: l } = architecture;
    const [views, patches, text] = [3, 64, 96];
    const [seen, all] = [views * patches, views * patches + text];
    const tower =
      seen * 3 * v.patch ** 2 * v.width +
      v.layers * seen * (4 * v.width ** 2 + 2 * v.width * v.mlp + 2 * patches * v.width) +
      seen * v.width * l.width;
    const [q, kv] = [l.heads * l.head_dim, l.kv_heads * l.head_dim];
    const whole = all * (l.width * (2 * q + 2 * kv) + 3 * l.width * l.mlp + 2 * all * q);
    // The last layer has only keys and values.
    const prefix = (l.layers - 1) * whole + all * l.width * 2 * kv;
    const { flops } = graphWork(await read("molmoact2-yam", "prefill"), { batch: 1, prompt: text, prefix: all });
    expect(flops).toEqual({ f32: 2 * (tower + prefix) });
  });

  test("the graphs of a model with memory have the products that their sizes say, over all that they may remember", async () => {
    for (const name of ["dreamzero-astra-yam", "picasso-yam"]) {
      const text = await readFile(join(MODEL_DIR, "..", name, "model.json"), "utf8");
      const { architecture, frames, guidance, memory, prompt } = JSON.parse(text);
      const { transformer: t }: WorldArchitecture = architecture;
      const [branches, inner] = [guidance === null ? 1 : 2, t.heads * t.head_dim];
      const extend = (seen: number, remembered: number) => {
        const patches = (frames.later / memory.later) * 3 * t.patch ** 2;
        const all = 4 * t.width * inner + 2 * (remembered + seen) * inner;
        const told = 2 * t.width * inner + 2 * prompt.tokens_max * inner;
        const layer = seen * (all + told + 3 * t.width * t.mlp);
        // The last layer has only keys and values.
        const layers = (t.layers - 1) * layer + 2 * seen * t.width * inner;
        const texts = 2 * t.layers * prompt.tokens_max * t.width * inner;
        return 2 * (seen * (patches + t.width) * t.channels + branches * (layers + texts));
      };
      const flopsOf = async (graph: string) => graphWork(await read(name, graph), {}).flops;
      const [first, later] = [memory.first, memory.later].map((latents) => latents * memory.tokens);
      expect(await flopsOf("extend")).toEqual({ f32: extend(later ?? 0, memory.window * memory.tokens) });
      expect(await flopsOf("prefill")).toEqual({ f32: extend(first ?? 0, 0) });
    }
  });

  test.each(names)(
    "%s has the same products in half precision, most of them of that type, and half the weights",
    async (name) => {
      for (const compute of HALVES) {
        const half = await bundleOf(name, "f32", { compute });
        for (const graph of await graphsOf(name)) {
          const bytes = await readFile(present(half.paths.get(`${graph}.onnx`), graph));
          const sizes = { batch: 1, prompt: 96, prefix: 288 };
          const whole = graphWork(await read(name, graph), sizes);
          const halved = graphWork(decodeModel(bytes, "external"), sizes);
          expect(Object.keys(halved.flops).sort()).toEqual(["f32", compute].sort());
          const { f32 = 0, [compute]: own = 0 } = halved.flops;
          expect(f32 + own).toBe(whole.flops.f32 ?? 0);
          expect(own / f32).toBeGreaterThan(10);
          // Embeddings, norms and biases stay in float32.
          expect(halved.weightBytes / whole.weightBytes).toBeWithin(0.5, 0.6);
          expect(halved.portBytes).toBeLessThan(whole.portBytes);
          expect(halved.unknown).toEqual([]);
        }
      }
    },
  );
});
