/** The suite on a device that times its inferences: the CPU plays the GPU and its driver, as in test/engine/card.test.ts. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { gpuReport } from "../../../src/measure/gpu/report.ts";
import { runGpuSuite } from "../../../src/measure/gpu/suite.ts";
import { Problem } from "../../../src/std/problem.ts";
import { PLAYED, PlayedDriver } from "../../engine/played-driver.ts";
import { rehearse } from "../../engine/wrong-provider.ts";
import { type Figure, figureIn, from } from "../origin.ts";

const GPU = "cuda:0";
const ROOT = join(import.meta.dir, "../../..");

afterAll(async () => await rehearse());

describe.skipIf(PLAYED.absent)(PLAYED.title, () => {
  test("bench gpu tells the device's part of each station and the host's part of a chunk, alone and in a batch", async () => {
    const driver = PlayedDriver.make();
    await rehearse({ device: GPU, driver: driver.path });
    const plan = { devices: [GPU], chunks: 3, batchMax: 2, gpu: {} };
    const measured = await runGpuSuite({ ...plan, models: join(ROOT, "dist/models/molmoact2-yam") });
    if (measured instanceof Problem) throw new Error(measured.message);
    const { measurements } = gpuReport(from, measured).json as { measurements: { figures: Figure[] }[] };
    const value = (part: string, batch: number) => Number(figureIn(measurements[0]?.figures)(part, "p50_ms", batch));
    for (const batch of [1, 2]) {
      expect(value("host", batch)).toBeGreaterThan(0);
      expect(value("host", batch)).toBeLessThan(value("model", batch));
      for (const station of ["prefill", "denoise"]) expect(value(`device ${station}`, batch)).toBeGreaterThan(0);
    }
    for (const { model, onDevice } of measured[0]?.batches.flatMap(({ rounds }) => rounds) ?? []) {
      const { prefill = 0, denoise = 0, host = 0 } = onDevice ?? {};
      expect(prefill + denoise + host).toBeCloseTo(model, 6);
    }
    expect(driver.counts()).toMatchObject({ contexts: 0, streams: 0, events: 0, registered: 0, faults: 0 });
  }, 120_000);
});
