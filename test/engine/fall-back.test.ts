/**
 * Options of a GPU that a device cannot do: it is refused before anything is opened there, the reason is kept, and only `auto` goes on
 * to the next device. The CPU plays the GPU (native/src/core/rehearsal.rs).
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Bundle } from "../../src/bundle/read.ts";
import { type GpuOptions, gpuOptions } from "../../src/config/gpu.ts";
import type { Engine, Model } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { Problem } from "../../src/std/problem.ts";
import { bundleOf } from "../bundle/built.ts";
import { ok } from "./opened.ts";
import { rehearse } from "./wrong-provider.ts";

const GPU = "cuda:0";
let engine: Engine;
let bundle: Bundle;
beforeAll(async () => {
  engine = ok(await openEngine({ decodeThreads: 1 }));
  bundle = await bundleOf("molmoact2-yam");
  await rehearse({ device: GPU });
});
afterAll(async () => {
  await rehearse();
  await engine.close();
});

async function load(device: string, gpu?: GpuOptions): Promise<Model | Problem> {
  return await engine.load({ bundle, device, replicas: 1, threads: 1, slots: undefined, ...(gpu && { gpu }) });
}

/** Where `auto` ends, and why not on the devices before it. */
async function placed(gpu?: GpuOptions): Promise<{ device: string; refused: Record<string, string> }> {
  const model = ok(await load("auto", gpu));
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
  const named = await load(GPU, half);
  expect(named).toBeInstanceOf(Problem);
  expect((named as Problem).message).toContain(
    "cuda:0: precision is not f32, but cuda:0 computes in the types of the graph",
  );
  expect((named as Problem).message).toContain("name another device");
  const { device, refused } = await placed(half);
  expect(device).toBe("cpu");
  expect(refused[GPU]).toContain("precision is not f32");
  expect(refused["webgpu:0"]).toContain("precision is not f32");
  expect(refused["tensorrt:0"]).not.toContain("precision");
});

test("a CUDA graph is asked of every GPU, and means nothing on a CPU", async () => {
  const captured = gpuOptions({ cuda_graph: true });
  for (const name of [GPU, "cpu"]) {
    const model = ok(await load(name, captured));
    // The CPU, which plays the other one, has nothing to capture with.
    expect([model.device, model.refused, model.flow]).toEqual([name, [], name === GPU ? "whole" : "steps"]);
    await model.unload();
  }
});

test("an option that the engine does not know is refused, not passed over", async () => {
  const wrong = { ...gpuOptions(), precision: "f8" } as unknown as GpuOptions;
  const failed = await load("cpu", wrong);
  expect((failed as Problem).message).toContain("load plan: unknown variant `f8`");
});
