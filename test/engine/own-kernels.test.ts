/**
 * "Flow update for both directions with guidance, chunk decode", "no host step between flow steps", "30 × 14 floats come back". With
 * `own_kernels` latents stay on the device and chunks are decoded there (native/src/flow/device_flow.rs). The CPU plays the GPU
 * (native/src/core/rehearsal.rs), its driver and the kernels (native/cuda/driver.h).
 */
import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { gpuOptions } from "../../src/config/gpu.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, largestDifference, MODEL_DIR, parityOf } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import type { GoldenInput } from "../bundle/reference.ts";
import { variant } from "../bundle/variants.ts";
import { failed, Opened, ok, rowsOf } from "./opened.ts";
import { PLAYED, PlayedDriver } from "./played-driver.ts";
import { changed, rehearse } from "./wrong-provider.ts";

const GPU = "cuda:0";
const NAMES = readdirSync(join(MODEL_DIR, "..")).sort();
const NONE = { contexts: 0, streams: 0, events: 0, registered: 0, registeredBytes: 0, faults: 0 };
const F32_BYTES = 4;
const VERDICT_BYTES = 24;

let driver: PlayedDriver;
let engine: Engine | undefined;

beforeAll(() => {
  if (!PLAYED.absent) driver = PlayedDriver.make();
});

async function close(): Promise<void> {
  const open = engine;
  engine = undefined;
  await open?.close();
}

afterEach(async () => {
  await rehearse();
  await close();
  if (!PLAYED.absent) expect(driver.counts()).toMatchObject(NONE);
});

/** What makes a device run the steps of a flow one by one: a name that only the graph of a whole flow may have. */
async function inSteps(bundle: FlowBundle) {
  const { file } = bundle.manifest.graphs.denoise;
  const graph = await changed(bundle, file, ({ graph }) => {
    present(graph.node[0], "a node").name = "##";
  });
  return { [file]: graph };
}

interface LoadChoice {
  readonly own?: boolean;
  readonly steps?: boolean;
  readonly library?: string;
  readonly replicas?: number;
}

/** The bundle on the played GPU. */
async function load(
  bundle: FlowBundle,
  { own = true, steps = false, library = driver.path, replicas = 1 }: LoadChoice = {},
) {
  await rehearse({ device: GPU, driver: library, graphs: steps ? await inSteps(bundle) : {} });
  engine ??= ok(await openEngine({ decodeThreads: 2 }));
  return await Opened.with(engine, bundle, { device: GPU, replicas, slots: 2, gpu: gpuOptions({ own_kernels: own }) });
}

const chunksOf = async (opened: Opened) => (await opened.episode()).map(({ chunk }) => chunk);

/** Its episode by our kernels and by the host, to the bit. */
async function equal(bundle: FlowBundle, steps: boolean) {
  const host = await load(bundle, { own: false, steps });
  const expected = await chunksOf(host);
  const { copies } = host.model;
  await host.model.unload();
  const own = await load(bundle, { steps });
  expect(own.model.driverDevice).toEqual({ registeredBytes: expect.any(Number), kernels: true });
  expect(own.model.flow).toBe(host.model.flow);
  const chunks = await chunksOf(own);
  chunks.forEach((chunk, index) => {
    const other = present(expected[index], "the host's chunk");
    expect(chunk.actions).toEqual(other.actions);
    expect([chunk.clamped, chunk.cacheReset]).toEqual([other.clamped, other.cacheReset]);
  });
  return { own, copies };
}

describe.skipIf(PLAYED.absent)(PLAYED.title, () => {
  test.each(NAMES)(
    "%s: the rows of an episode are those of the host, to the bit, whole and step by step",
    async (name) => {
      const bundle = await bundleOf(name);
      for (const steps of [false, true]) {
        const { own } = await equal(bundle, steps);
        expect(own.model.flow).toBe(steps ? "steps" : "whole");
        await own.model.unload();
      }
    },
  );

  test("no step copies a latent: noise, times and states go there once, rows and verdicts come back", async () => {
    const bundle = await bundleOf("molmoact2-yam");
    const { own, copies } = await equal(bundle, true);
    const { action, flow, batch } = bundle.manifest;
    const latent = action.rows * action.width * F32_BYTES;
    const rows = action.rows * action.columns.length * F32_BYTES + batch * VERDICT_BYTES;
    expect(own.model.copies.fromDevice).toBe(copies.fromDevice - flow.steps * latent + rows);
    // Its states and the table of its times take some hundred bytes.
    const sent = copies.toDevice - own.model.copies.toDevice;
    expect(sent).toBeGreaterThan((flow.steps - 1) * latent - 4096);
    expect(sent).toBeLessThanOrEqual((flow.steps - 1) * latent + flow.steps * F32_BYTES);
  });

  test("rows that a chunk continues are held by the kernels", async () => {
    const bundle = await variant("rtc");
    const second = present((await episodeOf(bundle))[1], "the second").given;
    const continuing = (count: number): GoldenInput => ({
      ...second,
      prefix: present(second.prefix, "rows").slice(0, count),
    });
    const most = present(bundle.manifest.action.prefix, "the most");
    const counts = Array.from({ length: most + 1 }, (_, count) => count);
    const all = async (opened: Opened) => {
      const rows: number[][][] = [];
      for (const count of counts) rows.push(rowsOf(await opened.give(continuing(count))));
      return rows;
    };
    const host = await load(bundle, { own: false });
    const expected = await all(host);
    await host.model.unload();
    const own = await load(bundle);
    expect([own.model.flow, own.model.driverDevice?.kernels]).toEqual(["steps", true]);
    expect(await all(own)).toEqual(expected);
    // Robots of one batch continue each their own rows; what one holds is not the next one's.
    const together = await Promise.all(counts.map((count) => own.give(continuing(count))));
    together.forEach((chunk, count) => {
      const prefix = present(second.prefix, "rows").slice(0, count);
      expect(rowsOf(chunk).slice(0, count)).toEqual(prefix.map((row) => row.map(Math.fround)));
    });
  });

  test("a chunk that a bundle's limits refuse is refused in the words of the host", async () => {
    const bundle = await bundleOf("molmoact2-yam");
    const { given } = await parityOf(bundle);
    const far = { ...given, state: given.state.map((value, at) => (at === 0 ? 50 : value)) };
    const refusal = async (opened: Opened) => (await failed(await opened.run(far))).detail;
    const host = await load(bundle, { own: false });
    const words = await refusal(host);
    expect(words).toMatch(/from the state's 50, max_jump is/);
    await host.model.unload();
    const own = await load(bundle);
    const rows = (await own.give(given)).actions;
    expect(await refusal(own)).toBe(words);
    expect((await own.give(given)).actions).toEqual(rows);
  });

  test("an inference that fails between two steps leaves nothing behind for the next", async () => {
    const bundle = await bundleOf("molmoact2-yam");
    const { given } = await parityOf(bundle);
    const own = await load(bundle, { steps: true });
    const rows = (await own.give(given)).actions;
    for (const failStep of [0, 3]) {
      await failed(await own.run(given, { failStep }));
      expect((await own.give(given)).actions).toEqual(rows);
    }
  });

  test("replicas side by side have each its own latents, and robots that come at once their own chunks", async () => {
    const bundle = await bundleOf("molmoact2-yam");
    const { given } = await parityOf(bundle);
    const seeds = [0, 1, 2, 3, 4, 5].map((more) => ({ ...given, seed: given.seed + more }));
    const host = await load(bundle, { own: false });
    const expected = await Promise.all(seeds.map((one) => host.give(one)));
    await host.model.unload();
    const own = await load(bundle, { replicas: 2 });
    for (let round = 0; round < 3; round += 1) {
      const chunks = await Promise.all(seeds.map((one) => own.give(one)));
      chunks.forEach((chunk, index) => {
        const other = rowsOf(present(expected[index], "the host's chunk"));
        expect(largestDifference(rowsOf(chunk), other)).toBeLessThan(1e-5);
      });
    }
    expect(own.model.driverDevice?.kernels).toBe(true);
  });

  test("a chunk allocates nothing in our library", async () => {
    const own = await load(await bundleOf("molmoact2-yam"), { steps: true });
    expect(await own.allocations(10)).toBe(0);
  });

  test("memory, a stream, a kernel or a driver that is not there: the host moves latents and decodes, and the reason is told", async () => {
    const bundle = await bundleOf("molmoact2-yam");
    const { given } = await parityOf(bundle);
    const host = await load(bundle, { own: false });
    const rows = (await host.give(given)).actions;
    await host.model.unload();
    driver.refuseStreams(true);
    const streamless = await load(bundle);
    driver.refuseStreams(false);
    driver.memoryLeft(64);
    const full = await load(bundle);
    driver.memoryLeft();
    driver.refuseLaunches(true);
    const kernelless = await load(bundle);
    driver.refuseLaunches(false);
    const driverless = await load(bundle, { library: "libcuda-nowhere.so.1" });
    const reasons = [
      /no room for/,
      /^the device has no room for \d+ bytes more$/,
      /CUDA_ERROR_NO_BINARY_FOR_GPU/,
      /libcuda-nowhere\.so\.1/,
    ];
    for (const [index, opened] of [streamless, full, kernelless, driverless].entries()) {
      expect(opened.model.driverDevice).toMatchObject({
        kernels: false,
        kernelsReason: expect.stringMatching(reasons[index] ?? ""),
      });
      expect((await opened.give(given)).actions).toEqual(rows);
    }
  });
});
