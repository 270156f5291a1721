/**
 * "Weights once per device, shared by replicas and graphs", on a device whose memory is not the host's. The copying code counts what it
 * copies there, and the rows are the CPU's.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { childEnvironment } from "../../src/config/environment.ts";
import { present } from "../../src/std/assert.ts";
import { LAVAPIPE } from "./lavapipe.ts";
import { LOADS, SHARED_NAMES, type SharedWeights } from "./shared-weights-child.ts";

const TOLERANCE = 1e-3;

describe.skipIf(LAVAPIPE.absent)(LAVAPIPE.title, () => {
  const told: SharedWeights[] = [];
  const of = (name: string, load: SharedWeights["load"]) =>
    present(
      told.find((one) => one.name === name && one.load === load),
      "the load",
    );

  beforeAll(async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "shared-weights-child.ts")], {
      env: childEnvironment({
        ...LAVAPIPE.environment,
        MESA_SHADER_CACHE_DIR: join(tmpdir(), "tendon-lavapipe-shaders"),
      }),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [lines, errors, exited] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    // Beside ours there are notices of the WebGPU implementation.
    for (const line of lines.split("\n").filter((text) => text.startsWith("{")))
      told.push(JSON.parse(line) as SharedWeights);
    if (exited !== 0) throw new Error(`the child ended with ${exited}: ${errors}`);
  }, 600_000);

  test.each(SHARED_NAMES)("%s has the CPU's rows and its vectors', on two replicas and on one beside them", (name) => {
    for (const load of LOADS) {
      const { worst, parity } = of(name, load);
      for (const difference of [worst, ...parity]) expect(difference).toBeLessThan(TOLERANCE);
      // Numbers of another processor.
      expect(worst).toBeGreaterThan(0);
    }
  });

  test.each(SHARED_NAMES)(
    "%s has each tensor of its weight file on the device once, whatever graphs and replicas read it",
    (name) => {
      const { weights, namedBytes, distinctBytes } = of(name, "two");
      expect(weights).toEqual({
        sharedBytes: distinctBytes,
        copiedBytes: distinctBytes,
        ownBytes: 0,
        reason: undefined,
      });
      // Its graphs have matrices in common, or have none.
      expect(namedBytes / distinctBytes).toBeGreaterThan(name === "dreamzero-astra-yam" ? 2 : 0.99);
    },
  );

  test.each(SHARED_NAMES)("%s copies nothing for a second model with the same file", (name) => {
    const { sharedBytes } = of(name, "two").weights;
    expect(of(name, "beside").weights).toEqual({ sharedBytes, copiedBytes: 0, ownBytes: 0, reason: undefined });
  });
});
