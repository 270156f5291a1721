/**
 * Sessions that are parked in host memory between their steps: their chunks and memories are those of sessions that never were, whatever
 * else happens to them meanwhile. One place, three sessions: the one that runs has parked another.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { ChunkResult, Inference } from "../../src/engine/engine.ts";
import { Fault } from "../../src/engine/fault.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, type Golden } from "../bundle/built.ts";
import type { GoldenInput } from "../bundle/reference.ts";
import { memoryOf } from "./memory.ts";
import { engineOfFile, Opened, ok } from "./opened.ts";

const MODELS = ["dreamzero-astra-yam", "picasso-yam"];
const SESSIONS = 3;

const engine = await engineOfFile();

describe.each(MODELS)("%s", (name) => {
  let opened: Opened;
  let episode: GoldenInput[];
  /** Chunks and memories of a session that was alone, by step. */
  const clean: { chunk: ChunkResult; memory: { frames: number; digest: bigint } }[] = [];
  const at = (step: number) => present(clean[step], "a clean step");
  const given = (step: number) => present(episode[step], "an observation");

  beforeAll(async () => {
    const bundle = await bundleOf(name);
    const alone = await Opened.with(engine, bundle, { slots: 1 });
    const { slotBytes } = alone.model.sessionMemory;
    episode = (await episodeOf(bundle)).map(({ given }: Golden) => given);
    for (const given of episode) {
      const chunk = await alone.give(given, { slot: 0 });
      clean.push({ chunk, memory: memoryOf(alone.model, 0) });
    }
    await alone.model.unload();
    opened = await Opened.with(engine, bundle, { slots: 1, parkedBytesMax: 2 * slotBytes + 1 });
    expect(opened.model).toMatchObject({ slots: SESSIONS, sessionMemory: { places: 1, slotBytes } });
  }, 120_000);

  afterAll(async () => await opened.model.unload());

  afterEach(() => {
    for (let slot = 0; slot < SESSIONS; slot += 1) opened.model.sessionDrop(slot);
    const { slots_held, memory_bytes_held, slots_parked, parked_bytes_held, frames_free, chunks_free } = engine.stats();
    expect([slots_held, memory_bytes_held, slots_parked, parked_bytes_held, frames_free, chunks_free]).toEqual([
      ...[0, 0, 0, 0, 256, 128],
    ]);
  });

  /** A chunk must be the one of that step of a session that was alone. */
  const same = (chunk: ChunkResult, step: number) => {
    const { promptTokens, cachedTokens, cacheReset, actions } = at(step).chunk;
    expect([chunk.promptTokens, chunk.cachedTokens, chunk.cacheReset]).toEqual([
      promptTokens,
      cachedTokens,
      cacheReset,
    ]);
    expect(chunk.actions).toEqual(actions);
  };

  const follow = async (slot: number, step: number) => {
    same(await opened.give(given(step), { slot }), step);
    expect(memoryOf(opened.model, slot)).toEqual(at(step).memory);
  };

  test("with a park between every two steps an episode equals one without, over a whole window and beyond", async () => {
    const before = engine.stats();
    for (let step = 0; step < episode.length; step += 1) {
      for (let slot = 0; slot < SESSIONS; slot += 1) await follow(slot, step);
      // Parked ones too.
      for (let slot = 0; slot < SESSIONS; slot += 1) expect(memoryOf(opened.model, slot)).toEqual(at(step).memory);
    }
    const { sessions_parked, sessions_brought_back, parking_us, slots_parked } = engine.stats();
    const runs = SESSIONS * episode.length;
    expect([sessions_parked - before.sessions_parked, sessions_brought_back - before.sessions_brought_back]).toEqual([
      runs - 1,
      runs - SESSIONS,
    ]);
    expect(parking_us).toBeGreaterThan(before.parking_us);
    expect(slots_parked).toBe(SESSIONS - 1);
  });

  test("what is parked takes as many bytes as are committed", async () => {
    await follow(0, 0);
    await follow(0, 1);
    const { memory_bytes_held } = engine.stats();
    await follow(1, 0);
    expect(engine.stats()).toMatchObject({ slots_parked: 1, parked_bytes_held: memory_bytes_held });
    opened.model.sessionDrop(0);
    expect(engine.stats()).toMatchObject({ slots_parked: 0, parked_bytes_held: 0 });
  });

  test("inferences of several sessions that are queued together on one place give their own chunks", async () => {
    for (let step = 0; step < 4; step += 1) {
      const runs: Inference[] = [];
      for (let slot = 0; slot < SESSIONS; slot += 1) runs.push(await opened.run(given(step), { slot }));
      // All results are there before any of them is settled: a session is parked with a block that nobody has kept yet.
      const results = await Promise.all(runs.map((run) => run.result));
      for (const result of results) same(ok(result), step);
      for (const [slot, run] of runs.entries()) {
        if (slot === 1 && step < 3) run.abort();
        else run.commit();
        await run.released;
      }
      expect(memoryOf(opened.model, 0)).toEqual(at(step).memory);
      if (step < 3) same(await opened.give(given(step), { slot: 1 }), step);
      expect(memoryOf(opened.model, 1)).toEqual(at(step).memory);
    }
  });

  test("an inference that is cancelled, withdrawn, fails or is not kept leaves its parked session as it was", async () => {
    const { steps } = opened.bundle.manifest.flow;
    for (let slot = 0; slot < 2; slot += 1) for (let step = 0; step < 2; step += 1) await follow(slot, step);
    for (const end of ["abort", "cancel", "withdraw", "fail"] as const) {
      const blocker = await opened.run(given(2), { slot: 1 });
      const run = await opened.run(given(2), { slot: 0, ...(end === "fail" && { failStep: steps - 1 }) });
      if (end === "cancel") run.cancel();
      const withdrawn = end === "withdraw" && run.withdraw();
      expect((await run.result) instanceof Fault).toBe(end === "cancel" || end === "fail" || withdrawn);
      ok(await blocker.result);
      blocker.abort();
      run.abort();
      await Promise.all([run.released, blocker.released]);
      for (let slot = 0; slot < 2; slot += 1) expect(memoryOf(opened.model, slot)).toEqual(at(1).memory);
    }
    await follow(0, 2);
    await follow(1, 2);
  });

  test("a session that is dropped while others run, parked or not, is gone, and the next one in its slot begins anew", async () => {
    for (let slot = 0; slot < SESSIONS; slot += 1) await follow(slot, 0);
    for (let round = 0; round < 6; round += 1) {
      const busy = round % SESSIONS;
      const dropped = (busy + 1 + (round % 2)) % SESSIONS;
      const run = await opened.run(given(1), { slot: busy });
      // The replica parks this one, or another, right now.
      opened.model.sessionDrop(dropped);
      same(ok(await run.result), 1);
      run.abort();
      await run.released;
      await follow(dropped, 0);
      expect(memoryOf(opened.model, busy)).toEqual(at(0).memory);
    }
  });

  test("prompt_tokens of a parked session is known before the inference", async () => {
    await follow(0, 0);
    await follow(1, 0);
    const state = new Float32Array(given(1).state);
    const { instruction } = given(1);
    expect(opened.model.measure({ instruction, state, slot: 0 })).toBe(at(1).chunk.promptTokens);
  });

  test("to park and to bring back allocates nothing in the native library", async () => {
    const round = async () => {
      for (let step = 0; step < 3; step += 1) for (let slot = 0; slot < 2; slot += 1) await follow(slot, step);
      for (let slot = 0; slot < 2; slot += 1) opened.model.sessionDrop(slot);
    };
    await round();
    const before = engine.stats().allocations;
    await round();
    expect(engine.stats().allocations).toBe(before);
  });
});

test("the places come from the memory that is measured, the parked ones from the limit", async () => {
  const bundle = await bundleOf("dreamzero-astra-yam");
  const load = async (options: object) => {
    const { model } = await Opened.with(engine, bundle, options);
    const { slots, sessionMemory } = model;
    await model.unload();
    return { slots, ...sessionMemory };
  };
  const { slots, places, slotBytes, room } = await load({ replicas: 2 });
  // Small enough for as many as there are at most.
  expect([slots, places]).toEqual([2 * 64, 2 * 64]);
  expect(["machine", "cgroup"]).toContain(present(room, "a room").of);
  const { free, reserve } = present(room, "a room");
  expect(free).toBeGreaterThan(reserve + 2 * 64 * slotBytes);
  expect(await load({ slots: 3, parkedBytesMax: "default" })).toMatchObject({ slots: 6, places: 3 });
  // The limit is the model's: each replica has half of it, in whole sessions.
  const three = { replicas: 2, slots: 3, parkedBytesMax: 3 * slotBytes };
  expect(await load(three)).toMatchObject({ slots: 2 * (3 + 1), places: 6 });
  expect(await load({ slots: 3, parkedBytesMax: slotBytes - 1 })).toMatchObject({ slots: 3, places: 3 });
  expect(await load({ slots: 3, device: "echo", parkedBytesMax: slotBytes })).toMatchObject({ slots: 4, places: 3 });
});
