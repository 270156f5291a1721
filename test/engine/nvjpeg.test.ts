/**
 * "nvJPEG as an option, chosen by measurement per batch of frames, with its pixel difference stated": frames that a GPU decodes
 * (native/src/image/frame/device.rs). The CPU plays the GPU, its driver and nvJPEG; no GPU has run this.
 */
import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type GpuOptions, gpuOptions } from "../../src/config/gpu.ts";
import type { Bundle, Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { Failure } from "../../src/error/core.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, parityOf } from "../bundle/built.ts";
import { Opened, ok } from "./opened.ts";
import { PLAYED, PlayedDriver } from "./played-driver.ts";
import { PlayedNvjpeg } from "./played-nvjpeg.ts";
import { type Rehearsal, rehearse } from "./wrong-provider.ts";

const GPU = "cuda:0";
const VECTORS = join(import.meta.dir, "../vectors/jpeg");
/** libjpeg-turbo is slower than kernels that the CPU plays. */
const SLOW_US = 150_000;
/** Of the three frames of a chunk of molmoact2: the left one is progressive, which nvJPEG is never given. */
const TAKEN = 2;

let driver: PlayedDriver;
let nvjpeg: PlayedNvjpeg;
let open: Engine | undefined;

interface Wanted extends Partial<Rehearsal> {
  readonly jpeg?: GpuOptions["jpeg"];
  readonly bundle?: Bundle;
  readonly replicas?: number;
  readonly decodeThreads?: number;
}

async function load({ jpeg = "nvjpeg", bundle, replicas = 1, decodeThreads = 2, ...rehearsal }: Wanted = {}) {
  await rehearse({ device: GPU, driver: driver.path, nvjpeg: nvjpeg.path, ...rehearsal });
  open = ok(await openEngine({ decodeThreads }));
  const gpu = gpuOptions({ jpeg });
  return await Opened.with(open, bundle ?? (await bundleOf("molmoact2-yam")), { device: GPU, replicas, gpu, slots: 2 });
}

async function close(): Promise<void> {
  const engine = open;
  open = undefined;
  await engine?.close();
}

/** Everything is given back, and nothing was done wrong. */
function expectNothingHeld(): void {
  const { contexts, streams, registered, memories, faults } = driver.counts();
  const { handles, states, faults: wrong } = nvjpeg.counts();
  expect({ contexts, streams, registered, memories, faults, handles, states, wrong }).toEqual({
    ...{ contexts: 0, streams: 0, registered: 0, memories: 0, faults: 0 },
    ...{ handles: 0, states: 0, wrong: 0 },
  });
}

/** The rows of a bundle's episode. */
async function rowsOf(opened: Opened): Promise<number[][]> {
  const slot = opened.bundle.manifest.memory === null ? {} : { slot: 0 };
  const rows: number[][] = [];
  for (const { given } of await episodeOf(opened.bundle)) rows.push([...(await opened.give(given, slot)).actions]);
  return rows;
}

/** What libjpeg-turbo's frames give. */
async function rowsWithout(bundle?: Bundle): Promise<number[][]> {
  const opened = await load({ jpeg: "cpu", ...(bundle && { bundle }) });
  expect(opened.model.frameDecoder).toBeUndefined();
  const rows = await rowsOf(opened);
  expect(opened.engine.stats()).toMatchObject({ framesByDevice: 0, framesPassedOn: 0 });
  await close();
  return rows;
}

beforeAll(async () => {
  if (PLAYED.absent) return;
  driver = PlayedDriver.make();
  nvjpeg = await PlayedNvjpeg.make(driver);
});
afterEach(async () => {
  if (PLAYED.absent) return;
  nvjpeg.set();
  driver.lose(false);
  driver.refuseStreams(false);
  await rehearse();
  await close();
  expectNothingHeld();
});

describe.skipIf(PLAYED.absent)(PLAYED.title, () => {
  test.each([
    ["frames that the engine normalises", "molmoact2-yam", {}],
    ["pixels that the graph normalises", "molmoact2-yam", { compute: "f16" }],
    ["an episode with memory", "dreamzero-astra-yam", { compute: "f16" }],
  ] as const)("%s: the same pixels give the same rows, to the bit", async (_, name, options) => {
    const bundle = await bundleOf(name, "f32", options);
    const rows = await rowsWithout(bundle);
    const opened = await load({ bundle });
    expect(opened.model.frameDecoder).toEqual({
      ...{ nvjpeg: true, reason: undefined, version: "13.0.4", decoders: 2 },
      times: { hostUs: expect.any(Number), deviceUs: expect.any(Number) },
      apart: { largest: 0, mean: 0 },
    });
    expect(await rowsOf(opened)).toEqual(rows);
    const { framesDecoded, framesByDevice, framesPassedOn } = opened.engine.stats();
    expect(framesByDevice + framesPassedOn).toBe(framesDecoded);
    expect(framesByDevice).toBeGreaterThan(framesPassedOn);
    // What the replica has of the driver is not touched by it; slots are registered when a tensor is first copied to them.
    const { registeredBytes, ...card } = present(opened.model.card, "a card");
    expect(card).toMatchObject({ timed: false, launched: false, unregistered: undefined });
    expect(driver.counts().registeredBytes).toBeGreaterThan(registeredBytes);
  });

  test("auto takes the faster one and tells both times: nvJPEG here, libjpeg-turbo there, whose model holds nothing for the other", async () => {
    const faster = await load({ jpeg: "auto", host_decode_us: SLOW_US });
    const { nvjpeg: chosen, times } = present(faster.model.frameDecoder, "a decoder");
    expect(chosen).toBe(true);
    expect(present(times, "times").hostUs).toBeGreaterThan(SLOW_US);
    expect(present(times, "times").deviceUs).toBeLessThan(present(times, "times").hostUs);
    await faster.chunk();
    expect(faster.engine.stats().framesByDevice).toBe(TAKEN);
    await close();

    nvjpeg.set({ decodeUs: 20_000 });
    const slower = await load({ jpeg: "auto" });
    const decoder = present(slower.model.frameDecoder, "a decoder");
    expect(decoder).toMatchObject({ nvjpeg: false, reason: "libjpeg-turbo is as fast here, or faster" });
    expect(present(decoder.times, "times").deviceUs).toBeGreaterThan(20_000);
    expect(present(decoder.times, "times").hostUs).toBeLessThan(20_000);
    expect(driver.counts()).toMatchObject({ streams: 0, memories: 0 });
    expect(nvjpeg.counts()).toMatchObject({ handles: 0, states: 0 });
    await slower.chunk();
    expect(slower.engine.stats().framesByDevice).toBe(0);
    await close();

    // Whoever names it has it, whatever the time.
    const named = await load();
    expect(named.model.frameDecoder).toMatchObject({ nvjpeg: true, reason: undefined });
  });

  test("one that takes damaged frames, which libjpeg-turbo refuses, is not used", async () => {
    nvjpeg.set({ lenient: 1 });
    const opened = await load();
    expect(opened.model.frameDecoder).toMatchObject({
      nvjpeg: false,
      reason: "it takes a damaged frame that libjpeg-turbo refuses",
    });
    await opened.chunk();
    expect(opened.engine.stats().framesByDevice).toBe(0);
  });

  test("a frame that nvJPEG refuses, or is never given, is libjpeg-turbo's, and is counted", async () => {
    const rows = await rowsWithout();
    const opened = await load();
    nvjpeg.set({ refusedWidth: 160 });
    expect(await rowsOf(opened)).toEqual(rows);
    expect(opened.engine.stats()).toMatchObject({ framesDecoded: 3, framesByDevice: 0, framesPassedOn: 3 });
    nvjpeg.set();
    expect(await rowsOf(opened)).toEqual(rows);
    expect(opened.engine.stats()).toMatchObject({ framesDecoded: 6, framesByDevice: TAKEN, framesPassedOn: 4 });
  });

  test("a decoder whose pixels are far off is out by the parity vectors, with their difference, and the model runs without it", async () => {
    const rows = await rowsWithout();
    nvjpeg.set({ levels: 60 });
    const opened = await load({ replicas: 2 });
    expect(opened.model.frameDecoder).toMatchObject({
      nvjpeg: false,
      reason: expect.stringMatching(
        /^the parity vectors fail with frames that nvJPEG decodes: its rows are wrong: they differ by .* expected at most/,
      ),
      apart: { largest: 60, mean: expect.any(Number) },
    });
    expect(opened.model.device).toBe(GPU);
    expect(Math.max(...opened.model.parity)).toBeLessThan(1e-4);
    expect(driver.counts()).toMatchObject({ memories: 0 });
    expect(await rowsOf(opened)).toEqual(rows);
    expect(opened.engine.stats().framesByDevice).toBe(0);
  });

  test("pixels that are within the bundle's tolerance are told with their difference, and the parity is that of the frames in use", async () => {
    const bundle = await bundleOf("molmoact2-yam", "f32", { compute: "f16" });
    const without = await load({ jpeg: "cpu", bundle });
    const { parity } = without.model;
    await close();
    nvjpeg.set({ levels: 2, levelsEvery: 100 });
    const { model } = await load({ bundle });
    expect(model.frameDecoder).toMatchObject({ nvjpeg: true, apart: { largest: 2 } });
    expect(present(model.frameDecoder?.apart, "pixels").mean).toBeCloseTo(0.02, 3);
    expect(model.parity).not.toEqual(parity);
  });

  test("nvJPEG that is not there, is another library, or is refused by the driver: the reason is told, and libjpeg-turbo decodes", async () => {
    const rows = await rowsWithout();
    for (const [library, reason] of [
      ["libnvjpeg-nowhere.so.13", "libnvjpeg-nowhere.so.13"],
      ["libm.so.6", "nvjpegGetProperty"],
    ] as const) {
      const opened = await load({ nvjpeg: library });
      expect(opened.model.frameDecoder).toMatchObject({
        ...{ nvjpeg: false, decoders: 0, times: undefined, apart: undefined },
        reason: expect.stringMatching(new RegExp(`^nvJPEG cannot be used: .*${reason}`)),
      });
      expect(await rowsOf(opened)).toEqual(rows);
      await close();
    }
    driver.refuseStreams(true);
    const streamless = await load();
    expect(streamless.model.frameDecoder?.reason).toContain("no room for");
    expect(await rowsOf(streamless)).toEqual(rows);
    await close();
    driver.refuseStreams(false);
    const driverless = await load({ driver: "libcuda-nowhere.so.1" });
    expect(driverless.model.frameDecoder?.reason).toContain("libcuda-nowhere.so.1");
  });

  test("a file that is no frame fails with the words of a model without nvJPEG", async () => {
    const bad = (await readdir(VECTORS)).filter((file) => file.startsWith("bad-") && file.endsWith(".jpg"));
    expect(bad.length).toBeGreaterThan(20);
    const refusals = async (opened: Opened) => {
      const told: unknown[] = [];
      for (const file of bad) {
        const bytes = await Bun.file(join(VECTORS, file)).bytes();
        if (bytes.length === 0) continue;
        const failure = await ok(opened.model.framePut(0, bytes, 0)).decoded();
        if (!(failure instanceof Failure)) throw new Error(`${file} is decoded`);
        told.push([file, failure.code, failure.message, failure.detail]);
      }
      return told;
    };
    const expected = await refusals(await load({ jpeg: "cpu" }));
    await close();
    const opened = await load();
    expect(await refusals(opened)).toEqual(expected);
    expect(opened.engine.stats()).toMatchObject({ framesByDevice: 0, framesRefused: expected.length });
    // The decoders are as they were.
    await opened.chunk();
    expect(opened.engine.stats().framesByDevice).toBe(TAKEN);
  });

  test("a chunk whose frames a device decodes allocates nothing in our library", async () => {
    const opened = await load();
    // Slots are registered and sizes known once each was used; the system chooses which thread takes a frame.
    const batches: number[] = [];
    do {
      const before = opened.engine.stats().allocations;
      for (let chunk = 0; chunk < 10; chunk += 1) await opened.chunk();
      batches.push(opened.engine.stats().allocations - before);
    } while (batches.at(-1) !== 0 && batches.length < 6);
    expect(batches.at(-1)).toBe(0);
    const { framesDecoded, framesByDevice } = opened.engine.stats();
    expect(framesByDevice / TAKEN).toBe(framesDecoded / 3);
  });

  test("several robots at once on two replicas have the rows of one alone; frames that find no decoder free are libjpeg-turbo's", async () => {
    const rows = await rowsWithout();
    nvjpeg.set({ decodeUs: 2000 });
    const opened = await load({ replicas: 2, decodeThreads: 6 });
    expect(opened.model.frameDecoder).toMatchObject({ nvjpeg: true, decoders: 4 });
    const { given } = await parityOf(opened.bundle);
    const chunks = await Promise.all(Array.from({ length: 12 }, async () => [...(await opened.give(given)).actions]));
    for (const actions of chunks) expect([actions]).toEqual(rows);
    const { framesDecoded, framesByDevice, framesPassedOn } = opened.engine.stats();
    expect(framesDecoded).toBe(36);
    expect(framesPassedOn).toBeLessThanOrEqual(12);
    expect(framesByDevice).toBeWithin(1, 12 * TAKEN + 1);
  });

  test("a device that is lost decodes no frame any more: libjpeg-turbo does, and the run is the one to meet the loss", async () => {
    const rows = await rowsWithout();
    const opened = await load();
    driver.lose(true);
    expect(await rowsOf(opened)).toEqual(rows);
    driver.lose(false);
    expect(await rowsOf(opened)).toEqual(rows);
    const { framesDecoded, framesByDevice, framesPassedOn } = opened.engine.stats();
    expect([framesDecoded, framesByDevice]).toEqual([6, 0]);
    // At most one by each thread, until the first is told.
    expect(framesPassedOn).toBeWithin(1, 4);
  });

  test("two models have decoders of their own, and each gives its own back", async () => {
    const one = await load();
    const { states } = nvjpeg.counts();
    const two = await Opened.with(one.engine, await bundleOf("picasso-yam"), {
      ...{ device: GPU, slots: 2, gpu: gpuOptions({ jpeg: "nvjpeg" }) },
    });
    expect(nvjpeg.counts()).toMatchObject({ handles: 2, states: 2 * states });
    await one.model.unload();
    const [first] = await episodeOf(two.bundle);
    await two.give(present(first, "an observation").given, { slot: 0 });
    expect(nvjpeg.counts()).toMatchObject({ handles: 1, states });
  });
});
