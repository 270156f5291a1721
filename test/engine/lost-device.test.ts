/**
 * A lost device: it is known by the number of the driver's answer, and what lies on it is left as it is until the process ends. A drained
 * replica gives its memory back. The CPU plays the GPU (native/src/core/rehearsal.rs) and its driver (native/cuda/driver_host.h).
 */
import { afterEach, describe, expect, test } from "bun:test";
import { gpuOptions } from "../../src/config/gpu.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { bundleOf } from "../bundle/built.ts";
import { failed, Opened, ok } from "./opened.ts";
import { PLAYED, PlayedDriver } from "./played-driver.ts";
import { rehearse, rehearseFault } from "./wrong-provider.ts";

const GPU = "cuda:0";
let engine: Engine | undefined;

/** Replicas on these devices, whose driver is fresh: what is left on a lost one stays counted. */
async function on(devices: readonly string[], name = "molmoact2-yam"): Promise<[Opened, PlayedDriver]> {
  const driver = PlayedDriver.make();
  await rehearse({ device: GPU, driver: driver.path });
  engine = ok(await openEngine({ decodeThreads: 2 }));
  const gpu = gpuOptions({ own_kernels: true });
  const options = { device: devices, replicas: devices.length, slots: 2, gpu };
  return [await Opened.with(engine, await bundleOf(name), options), driver];
}

async function close(): Promise<void> {
  const open = engine;
  engine = undefined;
  await open?.close();
}

afterEach(async () => {
  await close();
  await rehearse();
});

describe.skipIf(PLAYED.absent)(PLAYED.title, () => {
  test("nothing on a lost device is given back, neither when its model is unloaded nor when the engine is closed", async () => {
    const [opened, driver] = await on([GPU]);
    const { streams, events, registered, memories } = driver.counts();
    driver.lose(700);
    const run = ok(opened.model.observe(await opened.observation({ fault: "device" })));
    expect((await failed(run)).kind).toBe("replica_out");
    expect(opened.model.lost).toMatchObject([{ device: GPU, cause: "device_lost" }]);
    await opened.model.unload();
    await close();
    expect(driver.counts()).toMatchObject({ streams, events, registered, memories, contexts: 1, faults: 0 });
    expect([streams, events > 0, registered > 0, memories > 0]).toEqual([1, true, true, true]);
  });

  test("after a failed inference the driver is asked once, and its number says whether the device is lost", async () => {
    for (const code of [700, 719, 214, 999, 46, 710, 100]) {
      const [opened, driver] = await on([GPU]);
      const observation = await opened.observation();
      // The error of the runtime is about one inference.
      await rehearseFault("memory");
      driver.lose(code);
      expect((await failed(ok(opened.model.observe(observation)))).kind).toBe("replica_out");
      expect(opened.model.lost[0]).toMatchObject({
        cause: "device_lost",
        reason: expect.stringContaining(`(${code})`),
      });
      expect(driver.counts()).toMatchObject({ losses: 1, faults: 0 });
      await close();
    }
  });

  test("a device whose driver answers with another number goes on after a failed inference", async () => {
    const [opened, driver] = await on([GPU]);
    const observation = await opened.observation();
    await rehearseFault("memory");
    driver.lose(400);
    const { kind } = await failed(ok(opened.model.observe(observation)));
    driver.lose(0);
    expect([kind, opened.model.lost]).toEqual(["out_of_memory", []]);
    expect((await opened.chunk()).rows).toBeGreaterThan(0);
  });

  test("a device that is lost in its first inference is refused, and nothing there is given back", async () => {
    const driver = PlayedDriver.make();
    // Its inference fails, since its rows are wrong.
    await rehearse({ device: GPU, driver: driver.path, stale: true });
    engine = ok(await openEngine({ decodeThreads: 2 }));
    driver.lose(719);
    const gpu = gpuOptions({ own_kernels: true });
    const { model } = await Opened.with(engine, await bundleOf("molmoact2-yam"), { device: "auto", gpu });
    expect(model.device).toBe("cpu");
    expect(model.refused.find(({ device }) => device === GPU)?.reason).toContain("(719)");
    expect(driver.counts()).toMatchObject({ faults: 0 });
  });

  test("a drained replica has given its streams, its memory and its sessions back when it is out", async () => {
    const [opened, driver] = await on([GPU, "cpu"], "dreamzero-astra-yam");
    for (const slot of [0, 2]) await opened.chunk({ slot });
    expect(driver.counts()).toMatchObject({ contexts: 1, streams: 1 });
    expect(engine?.drain(GPU)).toBeUndefined();
    while (opened.model.lost.length === 0) await Bun.sleep(1);
    const none = { contexts: 0, streams: 0, events: 0, registered: 0, memories: 0, faults: 0 };
    expect(driver.counts()).toMatchObject(none);
    const held = engine?.devices().map(({ device, slotsHeld }) => [device, slotsHeld]);
    expect(held).toEqual([
      [GPU, 0],
      ["cpu", 1],
    ]);
    expect((await opened.chunk({ slot: 3 })).replica).toBe(1);
  });
});
