/**
 * "All six reference bundles give the CPU's chunk within 1e-3, stateful episodes with resets included", through the product's own
 * loading on a device whose memory is not the host's.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { childEnvironment } from "../../src/config/environment.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, MODEL_DIR } from "../bundle/built.ts";
import { LAVAPIPE } from "./lavapipe.ts";
import {
  type Auto,
  type Comparison,
  type Crowd,
  HALVED,
  type Part,
  type Shipped,
  type Spread,
  VARIED,
  WEBGPU,
} from "./webgpu-child.ts";
import type { Remembered } from "./webgpu-memory.ts";

const NAMES = readdirSync(join(MODEL_DIR, "..")).sort();
const TOLERANCE = 1e-3;
const F32_BYTES = 4;
/** The bytes of an observation without its pixels and its noise. */
const SMALL_BYTES = 4096;

describe.skipIf(LAVAPIPE.absent)(LAVAPIPE.title, () => {
  const told = new Map<string, Shipped>();
  const captured = new Map<string, Comparison>();
  const varied = new Map<string, Comparison>();
  const halved = new Map<string, Comparison>();
  let timed: Comparison | undefined;
  const memories = new Map<string, Remembered>();
  let crowd: Crowd | undefined;
  let spread: Spread | undefined;
  let auto: Auto | undefined;
  let refusal: string | undefined;

  // It computes for one and a half minutes on one core; a busy machine takes longer. It is a separate process: the Vulkan loader and the
  // dynamic linker read their variables when it starts.
  beforeAll(async () => {
    // Kept from run to run: to compile the shaders takes a third of the time.
    const cache = join(tmpdir(), "tendon-lavapipe-shaders");
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "webgpu-child.ts")], {
      env: childEnvironment({ ...LAVAPIPE.environment, MESA_SHADER_CACHE_DIR: cache }),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [lines, errors, exited] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    // Beside ours there are notices of the WebGPU implementation.
    for (const line of lines.split("\n").filter((text) => text.startsWith("{"))) {
      const part = JSON.parse(line) as Part;
      if ("told" in part) told.set(part.told.name, part.told);
      if ("captured" in part) captured.set(part.captured.name, part.captured);
      if ("varied" in part) varied.set(part.varied.name, part.varied);
      if ("halved" in part) halved.set(part.halved.name, part.halved);
      if ("timed" in part) timed = part.timed;
      if ("remembered" in part) memories.set(part.remembered.name, part.remembered);
      if ("crowd" in part) crowd = part.crowd;
      if ("spread" in part) spread = part.spread;
      if ("auto" in part) auto = part.auto;
      if ("refusal" in part) refusal = part.refusal;
    }
    if (exited !== 0) throw new Error(`the child ended with ${exited}: ${errors}`);
  }, 600_000);

  test.each(NAMES)("%s gives the CPU's chunks when two episodes alternate", (name) => {
    const { device, differences, resets, parity, remembers } = present(told.get(name), "the bundle");
    expect(device).toBe(WEBGPU);
    for (const difference of [...differences, ...parity]) expect(difference).toBeLessThan(TOLERANCE);
    // Numbers of another processor: equal bits would mean that the CPU has computed both.
    expect(Math.max(...differences)).toBeGreaterThan(0);
    expect(resets.some((reset) => reset)).toBe(remembers);
  });

  test.each(NAMES)("%s keeps its caches on the device from prefill to the last step", (name) => {
    const { deviceBytes } = present(told.get(name), "the bundle");
    expect(deviceBytes).toBeGreaterThan(0);
  });

  test.each(NAMES)("%s has its noise copied there once and its rows back once, whatever its steps", async (name) => {
    const { copies, flow, remembers } = present(told.get(name), "the bundle");
    expect(flow).toBe("whole");
    const { action, graphs } = (await bundleOf(name)).manifest;
    const latent = action.rows * action.width * F32_BYTES;
    // A model with memory has the mask of its text computed by the CPU.
    if (remembers) expect(copies.fromDevice).toBeLessThan(latent + SMALL_BYTES);
    else expect(copies.fromDevice).toBe(latent);
    const bytesOf = (role: string, ports: readonly { readonly role: string; readonly shape: readonly unknown[] }[]) =>
      ports
        .filter((port) => port.role === role)
        .map(({ shape }) => shape.reduce<number>((all, size) => all * (typeof size === "number" ? size : 1), F32_BYTES))
        .reduce((sum, bytes) => sum + bytes, 0);
    const pixels = bytesOf("images", (graphs.extend ?? graphs.prefill).inputs);
    const noise = latent + bytesOf("video_latent", graphs.denoise.inputs);
    // Beside pixels and noise: tokens, masks and state.
    expect(copies.toDevice).toBeLessThan(pixels + noise + SMALL_BYTES);
  });

  test("kernels that are captured once are replayed on the next observation's frames, state and noise", () => {
    const one = present(captured.get("molmoact2-yam"), "the model");
    expect(one.flow).toBe("captured");
    expect(one.differences.length).toBeGreaterThan(1);
    for (const difference of one.differences) expect(difference).toBeLessThan(TOLERANCE);
  });

  test("a flow in which the CPU has a part is run as one graph that is not captured", () => {
    const one = present(captured.get("picasso-yam"), "the model");
    expect([one.flow, one.placesOnDevice]).toEqual(["whole", 2]);
    for (const difference of one.differences) expect(difference).toBeLessThan(TOLERANCE);
  });

  test.each(VARIED)("%s, whose inputs are those of a published policy, gives the CPU's chunks as one graph", (name) => {
    const { differences, flow } = present(varied.get(name), "the variant");
    expect(flow).toBe("whole");
    for (const difference of differences) expect(difference).toBeLessThan(TOLERANCE);
    expect(Math.max(...differences)).toBeGreaterThan(0);
  });

  test.each([...HALVED])(
    "%s in f16: pixels, caches, memory and products of two bytes on the device",
    async (name, within) => {
      const { differences, parity, flow, resets, remembers, placesOnDevice, copies } = present(
        halved.get(name),
        "the bundle",
      );
      expect(flow).toBe("whole");
      for (const difference of [...differences, ...parity]) {
        expect(difference).toBeLessThan(within);
        expect(difference).toBeGreaterThan(0);
      }
      expect([resets.some((reset) => reset), placesOnDevice]).toEqual([remembers, remembers ? 2 : 0]);
      // A pixel takes a byte, where a value of float32 takes four.
      expect(copies.toDevice).toBeLessThan(present(told.get(name), "the bundle of float32").copies.toDevice / 2);
    },
  );

  test("a time in integers is a constant of the one graph, which is captured as well", () => {
    const { flow, differences } = present(timed, "the variant");
    expect(flow).toBe("captured");
    for (const difference of differences) {
      expect(difference).toBeGreaterThan(0);
      expect(difference).toBeLessThan(TOLERANCE);
    }
  });

  test.each(NAMES)("%s has the memory of its sessions on the device, if there is one", (name) => {
    const { placesOnDevice, remembers } = present(told.get(name), "the bundle");
    expect(placesOnDevice).toBe(remembers ? 2 : 0);
    expect(memories.has(name)).toBe(remembers);
  });

  test("memory on the device is the same bit for bit when it was parked and is back, and what is not kept changes nothing", () => {
    expect(memories.size).toBe(2);
    for (const one of memories.values()) {
      expect(one).toMatchObject({ places: 1, placesOnDevice: 1, hostMemoryBecause: null });
      for (const found of [one.parked, one.discarded, one.dropped]) expect(found).toEqual(found.map(() => true));
      expect([one.parked.length, one.discarded.length, one.dropped.length]).toEqual([12, 6, 3]);
    }
  });

  test("a session that is dropped while another one takes its place gives everything back", () => {
    for (const { held } of memories.values()) expect(held).toEqual([0, 0, 0, 0]);
  });

  test.each(NAMES)("%s gives the same bits for a session that is parked between its steps", (name) => {
    const { remembers, parked } = present(told.get(name), "the bundle");
    expect(parked).toEqual(remembers ? [0, 0, 0, 0] : []);
  });

  test("a list places one replica on the device and one on the CPU, each with the CPU's rows", () => {
    const { devices, served, worst } = present(spread, "the list");
    expect([devices, served]).toEqual([
      [WEBGPU, "cpu"],
      [0, 1],
    ]);
    expect(worst).toBeGreaterThan(0);
    expect(worst).toBeLessThan(TOLERANCE);
  });

  test("models and replicas that share the device do not disturb each other", () => {
    expect(present(crowd, "the crowd").chunks).toBe(6);
    expect(present(crowd, "the crowd").worst).toBeLessThan(TOLERANCE);
  });

  test("a graph whose layers the CPU would compute is refused, not computed there unseen", () => {
    expect(refusal).toMatch(/webgpu:0: it cannot run com\.microsoft\.DynamicQuantize.*which the CPU would have to/);
  });

  test("auto does not take a software rasteriser, which is slower than the CPU, and says so", () => {
    const { device, refused } = present(auto, "auto");
    expect(device).toBe("cpu");
    expect(refused.find((one) => one.device === WEBGPU)?.reason).toMatch(
      /llvmpipe.*computes on the CPU.*name webgpu:0/,
    );
  });
});
