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
import { MODEL_DIR } from "../bundle/built.ts";
import { LAVAPIPE } from "./lavapipe.ts";
import { type Auto, type Crowd, type Part, type Told, WEBGPU } from "./webgpu-child.ts";

const NAMES = readdirSync(join(MODEL_DIR, "..")).sort();
const TOLERANCE = 1e-3;

describe.skipIf(LAVAPIPE.absent)(LAVAPIPE.title, () => {
  const told = new Map<string, Told>();
  let crowd: Crowd | undefined;
  let auto: Auto | undefined;
  let refusal: string | undefined;

  // It computes for one and a half minutes on one core; a busy machine takes longer. A process of its own: the Vulkan loader and the
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
      if ("crowd" in part) crowd = part.crowd;
      if ("auto" in part) auto = part.auto;
      if ("refusal" in part) refusal = part.refusal;
    }
    if (exited !== 0) throw new Error(`the child ended with ${exited}: ${errors}`);
  }, 600_000);

  test.each(NAMES)("%s gives the CPU's chunks, two episodes in turns", (name) => {
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

  test("models and replicas that share the device do not disturb each other", () => {
    expect(present(crowd, "the crowd").chunks).toBe(6);
    expect(present(crowd, "the crowd").worst).toBeLessThan(TOLERANCE);
  });

  test("a graph whose layers the CPU would compute is refused, not computed there unseen", () => {
    expect(refusal).toMatch(
      /webgpu:0: the CPU would compute nodes that belong on the device: \d+, first .*DynamicQuantize/,
    );
  });

  test("auto does not take a software rasteriser, which is slower than the CPU, and says so", () => {
    const { device, refused } = present(auto, "auto");
    expect(device).toBe("cpu");
    expect(refused.find((one) => one.device === WEBGPU)?.reason).toMatch(
      /llvmpipe.*computes on the CPU.*name webgpu:0/,
    );
  });
});
