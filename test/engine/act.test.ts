/** A model of one graph, without noise, steps and instruction, on the CPU and on a device that the CPU plays. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { openEngine } from "../../src/engine/native.ts";
import { LIMITS } from "../../src/limits.ts";
import { actBundle } from "../bundle/act-bundle.ts";
import { largestDifference, parityOf } from "../bundle/built.ts";
import { failed, Opened, ok, rowsOf } from "./opened.ts";
import { rehearse } from "./wrong-provider.ts";

const GPU = "cuda:0";
let cpu: Opened;
beforeAll(async () => {
  cpu = await Opened.with(ok(await openEngine({ decodeThreads: 2 })), await actBundle());
});
afterEach(async () => await rehearse());
afterAll(async () => await cpu.engine.close());

test("its rows are those of the graph, whatever instruction, seed and step the wire has", async () => {
  const { given, actions } = await parityOf(cpu.bundle);
  const chunk = await cpu.give(given);
  expect([chunk.rows, chunk.columns, cpu.model.flow, cpu.model.flowReason]).toEqual([100, 3, "none", null]);
  expect(largestDifference(rowsOf(chunk), actions)).toBeLessThan(1e-4);
  const other = await cpu.give({ ...given, instruction: "pick up the cube ".repeat(999), seed: 5, step: 3 });
  expect([...other.actions]).toEqual([...chunk.actions]);
  const moved = await cpu.give({ ...given, state: given.state.map((value) => value + 0.1) });
  expect([...moved.actions]).not.toEqual([...chunk.actions]);
});

test("it costs the tokens of its pictures and one of its state, and no word", async () => {
  const { given } = await parityOf(cpu.bundle);
  const measured = cpu.model.measure({ instruction: "pick up the cube", state: new Float32Array(given.state) });
  expect(measured).toBe(2 * 6 + 1);
  expect((await cpu.give(given)).promptTokens).toBe(2 * 6 + 1);
});

test("a drill fails it at its only moment, and all slots come back", async () => {
  const { given } = await parityOf(cpu.bundle);
  expect((await failed(await cpu.run(given, { failStep: 0 }))).kind).toBe("model_failed");
  const { frames_free, chunks_free } = cpu.engine.stats();
  expect({ frames_free, chunks_free }).toEqual({ frames_free: LIMITS.framesMax, chunks_free: LIMITS.chunksMax });
});

test("after warm-up our library allocates nothing for it", async () => {
  expect(await cpu.allocations(20)).toBe(0);
});

test("a device gives the same bits, alone and as a batch, with nothing of a flow asked for", async () => {
  await rehearse({ device: GPU });
  const gpu = await Opened.with(cpu.engine, cpu.bundle, { device: GPU });
  expect([gpu.model.device, gpu.model.flow, gpu.model.flowReason]).toEqual([GPU, "none", null]);
  const { given } = await parityOf(cpu.bundle);
  const both = [given, { ...given, state: given.state.map((value) => value / 2) }];
  const own = await Promise.all(both.map((one) => cpu.give(one)));
  const played = await Promise.all(both.map((one) => gpu.give(one)));
  for (const [index, chunk] of own.entries())
    expect(largestDifference(rowsOf(chunk), rowsOf(played[index] ?? chunk))).toBeLessThan(1e-5);
  expect(gpu.model.copies.fromDevice).toBe(100 * 3 * 4);
  await gpu.model.unload();
});

test("on echo it is zeros of the model's shape", async () => {
  await using echo = await Opened.with(ok(await openEngine({ decodeThreads: 2 })), cpu.bundle, { device: "echo" });
  const { given } = await parityOf(cpu.bundle);
  const chunk = await echo.give(given);
  expect([chunk.rows, new Set(chunk.actions)]).toEqual([100, new Set([0])]);
});
