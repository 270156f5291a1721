/**
 * Options of a GPU that a device cannot do: it is refused before anything is opened there, the reason is kept, and only `auto` goes on
 * to the next device. The CPU plays the GPU (native/src/core/rehearsal.rs).
 */
import { beforeAll, expect, test } from "bun:test";
import { type GpuOptions, gpuOptions } from "../../src/config/gpu.ts";
import { bundleOf } from "../bundle/built.ts";
import { Opened, refusal } from "./opened.ts";
import { rehearse, rehearsedEngine } from "./wrong-provider.ts";

const GPU = "cuda:0";
const engine = await rehearsedEngine();
const bundle = await bundleOf("molmoact2-yam");
beforeAll(async () => await rehearse({ device: GPU }));

/** As a load takes them. */
const options = (device: string, gpu?: GpuOptions) => ({ device, ...(gpu && { gpu }) });

/** Where `auto` ends, and why not on the devices before it. */
async function placed(gpu?: GpuOptions): Promise<{ device: string; refused: Record<string, string> }> {
  const { model } = await Opened.with(engine, bundle, options("auto", gpu));
  await model.unload();
  const refused = Object.fromEntries(model.refused.map(({ device, reason }) => [device, reason]));
  return { device: model.device, refused };
}

test("a device that can do what the options say is taken, with every other option set", async () => {
  for (const gpu of [undefined, gpuOptions(), gpuOptions({ arena_mib_max: 64, engine_cache: false })]) {
    expect((await placed(gpu)).device).toBe(GPU);
  }
});

test("half precision is TensorRT's alone: a named CUDA device fails the load, auto keeps the reason and takes the next", async () => {
  const half = gpuOptions({}, { precision: "f16" });
  const named = await refusal(engine, bundle, options(GPU, half));
  expect(named).toContain("cuda:0: precision is not f32, but cuda:0 computes in the types of the graph");
  expect(named).toContain("name another device");
  const { device, refused } = await placed(half);
  expect(device).toBe("cpu");
  expect(refused[GPU]).toContain("precision is not f32");
  expect(refused["webgpu:0"]).toContain("precision is not f32");
  expect(refused["tensorrt:0"]).not.toContain("precision");
});

test("a CUDA graph is asked of every GPU, and means nothing on a CPU", async () => {
  const captured = gpuOptions({ cuda_graph: true });
  for (const name of [GPU, "cpu"]) {
    const { model } = await Opened.with(engine, bundle, options(name, captured));
    // The CPU, which plays the other one, has nothing to capture with.
    expect([model.device, model.refused, model.flow]).toEqual([name, [], name === GPU ? "whole" : "steps"]);
    await model.unload();
  }
});

test("an option that the engine does not know is refused, not passed over", async () => {
  const wrong = { ...gpuOptions(), precision: "f8" } as unknown as GpuOptions;
  expect(await refusal(engine, bundle, options("cpu", wrong))).toContain("load plan: unknown variant `f8`");
});
