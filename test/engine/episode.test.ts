/** Episode memory on the native engine: what it keeps and discards, and that nothing else changes it. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { ChunkResult } from "../../src/engine/engine.ts";
import { Fault } from "../../src/engine/fault.ts";
import { present } from "../../src/std/assert.ts";
import { episodeOf, type Golden } from "../bundle/built.ts";
import type { GoldenInput } from "../bundle/reference.ts";
import { memoryOf } from "./memory.ts";
import { failed, Opened } from "./opened.ts";

let opened: Opened;
let episode: GoldenInput[];
/** Chunks and memories of an episode without faults, by step. */
const clean: { chunk: ChunkResult; memory: { frames: number; digest: bigint } }[] = [];

beforeAll(async () => {
  opened = await Opened.on("cpu", 2, "dreamzero-astra-yam");
  episode = (await episodeOf(opened.bundle)).map(({ given }: Golden) => given);
  for (const given of episode) {
    const chunk = await opened.give(given, { slot: 0 });
    clean.push({ chunk, memory: memoryOf(opened.model, 0) });
  }
  opened.model.sessionDrop(0);
}, 60_000);

afterAll(async () => await opened.engine.close());

beforeEach(() => {
  const { slots_held, memory_bytes_held, frames_free, chunks_free } = opened.engine.stats();
  expect([slots_held, memory_bytes_held, frames_free, chunks_free]).toEqual([0, 0, 256, 128]);
});

const at = (step: number) => present(clean[step], "a clean step");
const given = (step: number) => present(episode[step], "an observation");

/** Runs steps on a slot; each must equal that of the episode without faults. */
async function follow(slot: number, from: number, to: number): Promise<void> {
  for (let step = from; step < to; step += 1) {
    const chunk = await opened.give(given(step), { slot });
    expect(chunk.actions).toEqual(at(step).chunk.actions);
    expect(memoryOf(opened.model, slot)).toEqual(at(step).memory);
  }
}

test("memory holds the latent frames that the manifest says: 1, 3, 5, 7, then anew 1, 3", () => {
  expect(clean.map(({ memory }) => memory.frames)).toEqual([1, 3, 5, 7, 1, 3]);
  expect(clean.map(({ chunk }) => chunk.cacheReset)).toEqual([false, false, false, false, true, false]);
  expect(new Set(clean.map(({ memory }) => memory.digest)).size).toBe(6);
});

test("prompt_tokens counts kept and new frames, text and state; cached_tokens the kept ones", () => {
  const { tokens = 0 } = opened.bundle.manifest.memory ?? {};
  const text = at(0).chunk.promptTokens - tokens;
  expect(clean.map(({ chunk }) => [(chunk.promptTokens - text) / tokens, chunk.cachedTokens / tokens])).toEqual([
    [1, 0],
    [3, 1],
    [5, 3],
    [7, 5],
    [1, 0],
    [3, 1],
  ]);
});

test("prompt_tokens is known before the inference", async () => {
  for (let step = 0; step < 5; step += 1) {
    const state = new Float32Array(given(step).state);
    const measured = opened.model.measure({ instruction: given(step).instruction, state, slot: 5 });
    expect(measured).toBe((await opened.give(given(step), { slot: 5 })).promptTokens);
  }
  opened.model.sessionDrop(5);
});

test("the same observations in any slot of any replica give bit-equal chunks and memories", async () => {
  const other = opened.model.slots / opened.model.replicas;
  await follow(3, 0, 6);
  await follow(other + 1, 0, 3);
  opened.model.sessionDrop(3);
  opened.model.sessionDrop(other + 1);
});

test("the output depends on history: the same frames after another beginning give another chunk", async () => {
  await opened.give({ ...given(0), jpegs: given(0).jpegs.toReversed() }, { slot: 0 });
  const chunk = await opened.give(given(1), { slot: 0 });
  const worst = Math.max(...chunk.actions.map((value, index) => Math.abs(value - (at(1).chunk.actions[index] ?? 0))));
  expect(worst).toBeGreaterThan(0.01);
  opened.model.sessionDrop(0);
});

test("an inference that fails at any flow step leaves the memory as it was, and the next chunk is right", async () => {
  const { steps } = opened.bundle.manifest.flow;
  for (const step of [0, 1, 4]) {
    await follow(0, 0, step);
    for (let failStep = 0; failStep < steps; failStep += 1) {
      expect((await failed(await opened.run(given(step), { slot: 0, failStep }))).kind).toBe("model_failed");
    }
    if (step > 0) expect(memoryOf(opened.model, 0)).toEqual(at(step - 1).memory);
    await follow(0, step, step + 1);
    opened.model.sessionDrop(0);
  }
});

test("a chunk that is not committed, and one that is cancelled, leave no trace", async () => {
  await follow(0, 0, 3);
  for (const end of ["abort", "cancel", "withdraw"] as const) {
    const run = await opened.run(given(3), { slot: 0 });
    if (end === "cancel") run.cancel();
    const withdrawn = end === "withdraw" && run.withdraw();
    const result = await run.result;
    expect(result instanceof Fault).toBe(end === "cancel" || withdrawn);
    run.abort();
    await run.released;
    expect(memoryOf(opened.model, 0)).toEqual(at(2).memory);
  }
  await follow(0, 3, 6);
  opened.model.sessionDrop(0);
});

test("episodes that are interleaved do not touch each other", async () => {
  for (let step = 0; step < 6; step += 1) {
    await follow(1, step, step + 1);
    await opened.give({ ...given(step), seed: 99 }, { slot: 2 });
  }
  expect(memoryOf(opened.model, 2).frames).toBe(memoryOf(opened.model, 1).frames);
  opened.model.sessionDrop(1);
  opened.model.sessionDrop(2);
});

test("what was in a slot before does not matter, although it is still there", async () => {
  await follow(0, 0, 4);
  opened.model.sessionDrop(0);
  expect(memoryOf(opened.model, 0)).toMatchObject({ frames: 0 });
  await follow(0, 0, 2);
  opened.model.sessionDrop(0);
});

test("memory is what the manifest says, and dropping a session gives it back", async () => {
  const { memory, graphs } = opened.bundle.manifest;
  const blocks = graphs.prefill.outputs.filter(({ role }) => role === "block");
  const numbers = blocks.map(({ shape }) => Number(shape[0]) * Number(shape[1]) * Number(shape.at(-1)));
  const frameBytes = 4 * (memory?.tokens ?? 0) * numbers.reduce((sum, count) => sum + count, 0);
  await follow(0, 0, 3);
  await follow(1, 0, 1);
  const held = opened.engine.stats();
  expect([held.slots_held, held.memory_bytes_held]).toEqual([2, (5 + 1) * frameBytes]);
  opened.model.sessionDrop(0);
  expect(opened.engine.stats()).toMatchObject({ slots_held: 1, memory_bytes_held: frameBytes });
  opened.model.sessionDrop(1);
});

test("two inferences on a slot, a drop during one, an absent slot and frames of the wrong step are our own bugs", async () => {
  const run = await opened.run(given(0), { slot: 0 });
  const second = await opened.observed(given(0), { slot: 0 });
  expect(() => opened.model.observe(second)).toThrow("another inference has the slot");
  expect(() => opened.model.sessionDrop(0)).toThrow("an inference has the slot");
  expect(() => memoryOf(opened.model, 0)).toThrow("an inference has the slot");
  await run.result;
  run.abort();
  await run.released;
  expect(() => opened.model.observe({ ...second, slot: opened.model.slots })).toThrow("no such slot");
  expect(() => opened.model.sessionDrop(opened.model.slots)).toThrow("no such slot");
  for (const frame of second.frames) frame.drop();
  const later = await opened.observed(given(1), { slot: 0 });
  expect(() => opened.model.observe(later)).toThrow("12 frames, expected 3");
  for (const frame of later.frames) frame.drop();
});

test("a steady episode allocates nothing in the native library", async () => {
  await follow(0, 0, 6);
  opened.model.sessionDrop(0);
  const before = opened.engine.stats().allocations;
  await follow(0, 0, 6);
  opened.model.sessionDrop(0);
  expect(opened.engine.stats().allocations).toBe(before);
});
