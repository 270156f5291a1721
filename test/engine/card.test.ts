/**
 * "Frames decode into page-locked host memory", "stations by events": what a replica on an NVIDIA GPU asks of the driver
 * beside ONNX Runtime (native/src/ort/driver_device.rs). The CPU plays the GPU (native/src/core/rehearsal.rs) and its driver (native/cuda/driver_host.h).
 */
import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { gpuOptions } from "../../src/config/gpu.ts";
import type { ChunkResult, Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import { failed, Opened, ok } from "./opened.ts";
import { PLAYED, PlayedDriver } from "./played-driver.ts";
import { rehearse } from "./wrong-provider.ts";

const GPU = "cuda:0";
const STATEFUL = "dreamzero-astra-yam";
const NONE = { contexts: 0, streams: 0, events: 0, registered: 0, registeredBytes: 0, faults: 0 };

let driver: PlayedDriver;
let open: Engine | undefined;

interface LoadChoice {
  readonly replicas?: number;
  readonly name?: string;
  readonly library?: string;
  readonly slots?: number | undefined;
  readonly captures?: boolean;
  readonly own?: boolean;
}

async function load(wanted: LoadChoice = {}) {
  const { replicas = 1, name = "molmoact2-yam", library = driver.path, captures = false, own = false } = wanted;
  await rehearse({ device: GPU, driver: library, captures });
  open = ok(await openEngine({ decodeThreads: 2 }));
  return await Opened.with(open, await bundleOf(name), {
    device: GPU,
    replicas,
    slots: "slots" in wanted ? wanted.slots : 2,
    gpu: gpuOptions({ own_kernels: own }),
  });
}

async function close(): Promise<void> {
  const engine = open;
  open = undefined;
  await engine?.close();
}

/** What it was given to compute with, the same for all. */
async function rowsWithout(): Promise<number[]> {
  await rehearse({ device: GPU });
  await using opened = await Opened.on(GPU);
  return [...(await opened.chunk()).actions];
}

/** Threads that ended relaxed, and in a context, once there are no more of them: they end a moment after they were waited for. */
async function ended(): Promise<readonly [relaxed: number, entered: number]> {
  let [counts, same] = [driver.counts(), 0];
  while (same < 20) {
    await Bun.sleep(10);
    const now = driver.counts();
    same = now.relaxed === counts.relaxed && now.entered === counts.entered ? same + 1 : 0;
    counts = now;
  }
  return [counts.relaxed, counts.entered];
}

/** Runs of the denoise graph of a chunk. */
const runsOf = ({ model }: Opened, { manifest }: FlowBundle) => (model.flow === "steps" ? manifest.flow.steps : 1);

function timesOf({ micros }: ChunkResult) {
  const { device, prefill, denoise } = micros;
  const { prefill: read, denoise: flow } = present(device, "the device's times");
  // Rounded each by itself.
  expect([read > 0, read <= prefill + 1, flow > 0, flow <= denoise + 1]).toEqual([true, true, true, true]);
}

beforeAll(() => {
  if (!PLAYED.absent) driver = PlayedDriver.make();
});
afterEach(async () => {
  await rehearse();
  await close();
});

describe.skipIf(PLAYED.absent)(PLAYED.title, () => {
  test("what the device copies from and to is registered once, and let go of with the model", async () => {
    const rows = await rowsWithout();
    const before = driver.counts();
    const opened = await load();
    const { registered, registeredBytes, registeredEver, faults } = driver.counts();
    expect(faults).toBe(0);
    expect(registered).toBeGreaterThan(5);
    expect(registeredEver - before.registeredEver).toBe(registered);
    expect(opened.model.driverDevice).toEqual({ registeredBytes, kernels: false });
    // The memory holds at least all pictures of the largest inference.
    expect(registeredBytes).toBeGreaterThan(opened.model.copies.toDevice);
    const chunk = await opened.chunk();
    expect([...chunk.actions]).toEqual(rows);
    expect(driver.counts()).toMatchObject({ registered });
    await close();
    expect(driver.counts()).toMatchObject({ ...NONE, registeredEver });
  });

  // ONNX Runtime captures so that the calls of all threads are meant, and models are loaded side by side.
  test("threads that load, run or unload do not end the capture of a CUDA graph by another model's thread, and enter the device's context first", async () => {
    const [relaxed, entered] = await ended();
    const opened = await load();
    await opened.chunk();
    await close();
    // That of the load, that of its second graph, that of the replica, that of the end.
    expect(await ended()).toEqual([relaxed + 4, entered + 4]);
  });

  test("each run of a captured graph is waited for once, in the stream of its replica alone; our kernels leave one wait for a chunk", async () => {
    const rows = await rowsWithout();
    for (const own of [false, true]) {
      const opened = await load({ replicas: 2, captures: true, own });
      const runs = 1 + runsOf(opened, opened.bundle);
      const loaded = driver.counts();
      const chunks = await Promise.all(Array.from({ length: 6 }, () => opened.chunk()));
      for (const { actions } of chunks) expect([...actions]).toEqual(rows);
      const now = driver.counts();
      expect((now.waits - loaded.waits) / (now.records - loaded.records)).toBe((own ? 1 : runs) / (2 * runs));
      await close();
      expect(driver.counts()).toMatchObject(NONE);
    }
    // ONNX Runtime waits for what it launches kernel by kernel: its page-locked memory must come back.
    const plain = await load();
    const { waits } = driver.counts();
    await plain.chunk();
    expect(driver.counts().waits).toBe(waits);
  });

  test("threads that wait for the device sleep where event loop and decode have no core beside them", async () => {
    await load({ replicas: 2 });
    // Spinning is the driver's own choice, which is never taken back.
    expect(driver.counts().sleeping).toBe(availableParallelism() < 2 + 2 ? 1 : 0);
  });

  test("each replica has a stream and each inference two events: the device's times are those of inferences alone", async () => {
    const before = driver.counts();
    const opened = await load({ replicas: 2 });
    const runs = 1 + runsOf(opened, opened.bundle);
    const loaded = driver.counts();
    expect(loaded).toMatchObject({ streams: 2, events: 2 * 2 * runs, faults: 0 });
    expect(loaded.contextsSet - before.contextsSet).toBe(2);
    expect(opened.model.driverDevice).toEqual({ registeredBytes: expect.any(Number), kernels: false });
    for (let chunk = 1; chunk <= 3; chunk += 1) {
      timesOf(await opened.chunk());
      const now = driver.counts();
      expect(now.records - loaded.records).toBe(chunk * 2 * runs);
      // One call for a thread, not for each chunk.
      expect(now.contextsSet).toBe(loaded.contextsSet);
    }
    await close();
    expect(driver.counts()).toMatchObject(NONE);
  });

  test("a chunk that is timed allocates nothing in our library", async () => {
    const opened = await load();
    expect(await opened.allocations(10, timesOf)).toBe(0);
  });

  test("a model with memory is timed in a first observation, in a later one, and in the next after one that was cancelled", async () => {
    const opened = await load({ name: STATEFUL });
    const [first, later] = (await episodeOf(opened.bundle)).map(({ given }) => given);
    const begin = present(first, "an observation");
    timesOf(await opened.give(begin, { slot: 0 }));
    timesOf(await opened.give(present(later, "a later observation"), { slot: 0 }));
    await failed(await opened.run(begin, { slot: 1, failStep: 0 }));
    timesOf(await opened.give(begin, { slot: 1 }));
    await opened.model.unload();
    expect(driver.counts()).toMatchObject(NONE);
    await close();
    expect(driver.counts()).toMatchObject(NONE);
  });

  test("memory that the driver does not lock, a stream that it does not make, a driver that is not there: the model runs, and says so", async () => {
    const rows = await rowsWithout();
    driver.registerLeft(8192);
    const unlocked = await load();
    expect(unlocked.model.driverDevice).toMatchObject({
      registrationReason: expect.stringMatching(/^cuMemHostRegister: no room to page-lock \d+ bytes more$/),
    });
    expect([...(await unlocked.chunk()).actions]).toEqual(rows);
    driver.registerLeft();
    await close();
    expect(driver.counts()).toMatchObject(NONE);

    driver.refuseStreams(true);
    const streamless = await load();
    driver.refuseStreams(false);
    expect(streamless.model.driverDevice).toMatchObject({
      timesReason: expect.stringContaining("no room for"),
    });
    const chunk = await streamless.chunk();
    expect([[...chunk.actions], chunk.micros.device]).toEqual([rows, undefined]);
    await close();
    expect(driver.counts()).toMatchObject(NONE);

    const driverless = await load({ library: "libcuda-nowhere.so.1" });
    const reason = expect.stringContaining("libcuda-nowhere.so.1");
    expect(driverless.model.driverDevice).toMatchObject({
      registeredBytes: 0,
      registrationReason: reason,
      timesReason: reason,
    });
    expect([...(await driverless.chunk()).actions]).toEqual(rows);
  });

  test("the driver says how much memory sessions may have: what is free less a sixteenth of all", async () => {
    const { slotBytes } = (await load({ name: STATEFUL })).model.sessionMemory;
    await close();
    const used = 16 * 2 ** 30;
    // Room for three sessions and a half: free − (free + used) / 16.
    const free = Math.ceil(((3.5 * slotBytes + used / 16) * 16) / 15);
    driver.deviceFree(free);
    const { model } = await load({ name: STATEFUL, slots: undefined });
    driver.deviceFree();
    expect(model.sessionMemory).toMatchObject({
      room: { of: "gpu", free, reserve: Math.floor((free + used) / 16) },
      places: 3,
    });
    expect(driver.counts().faults).toBe(0);
  });

  test("a device that is no NVIDIA GPU asks no driver", async () => {
    const cpu = await Opened.on("cpu");
    open = cpu.engine;
    expect(cpu.model.driverDevice).toBeUndefined();
    expect((await cpu.chunk()).micros.device).toBeUndefined();
    expect(driver.counts()).toMatchObject(NONE);
  });
});
