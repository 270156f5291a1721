/** A device runs all steps of a flow as one graph: the CPU plays it, so that every number can be compared. */
import { afterEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ChunkResult } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, largestDifference, MODEL_DIR } from "../bundle/built.ts";
import { Opened, ok, rowsOf } from "./opened.ts";
import { changed, type Rehearsal, rehearse } from "./wrong-provider.ts";

const NAMES = readdirSync(join(MODEL_DIR, "..")).sort();
const DEVICE = "cuda:0";
const F32_BYTES = 4;
/** With its time known a graph is folded further: some sums are taken in another order. */
const TOLERANCE = 1e-5;

/** The bundle's episode on the CPU and on a device that the CPU plays. */
async function episode(name: string, graphs: Rehearsal["graphs"] = {}) {
  const bundle = await bundleOf(name);
  await using cpu = await Opened.with(ok(await openEngine({ decodeThreads: 2 })), bundle, { slots: 1 });
  await rehearse({ device: DEVICE, graphs });
  const device = await Opened.with(cpu.engine, bundle, { slots: 1, device: DEVICE });
  const place = bundle.manifest.memory === null ? {} : { slot: 0 };
  const chunks: [ChunkResult, ChunkResult][] = [];
  for (const { given } of await episodeOf(bundle)) {
    chunks.push([await cpu.give(given, place), await device.give(given, place)]);
  }
  const { copies, flow, flowReason } = device.model;
  expect([cpu.model.flow, cpu.model.flowReason]).toEqual(["steps", null]);
  return { chunks, copies, flow, flowReason, manifest: bundle.manifest };
}

afterEach(async () => await rehearse());

describe("all steps as one graph", () => {
  test.each(NAMES)("%s gives the rows of the steps one by one, resets included", async (name) => {
    const { chunks, flow, flowReason, manifest } = await episode(name);
    expect([flow, flowReason]).toEqual(["whole", null]);
    for (const [one, two] of chunks) {
      expect(largestDifference(rowsOf(one), rowsOf(two))).toBeLessThan(TOLERANCE);
      expect(two.cacheReset).toBe(one.cacheReset);
    }
    expect(chunks.some(([, two]) => two.cacheReset)).toBe(manifest.memory !== null);
  });

  test("one latent goes to the device and one comes back, however many steps there are", async () => {
    const { copies, manifest } = await episode("molmoact2-yam");
    const { action, flow, graphs } = manifest;
    const latent = action.rows * action.width * F32_BYTES;
    const broken = await changed(
      await bundleOf("molmoact2-yam"),
      graphs.denoise.file,
      // A name that only the graph of a whole flow may have: it cannot be made of this one.
      ({ graph }) => {
        present(graph.node[0], "a node").name = "##";
      },
    );
    const steps = await episode("molmoact2-yam", { [graphs.denoise.file]: broken });
    expect(steps.copies.fromDevice - copies.fromDevice).toBe((flow.steps - 1) * latent);
    // Each step but the first is told its latent, and each its time.
    expect(steps.copies.toDevice - copies.toDevice).toBe((flow.steps - 1) * latent + flow.steps * F32_BYTES);
    expect([steps.flow, steps.flowReason]).toEqual([
      "steps",
      `${graphs.denoise.file} cannot become one graph: the name "##" has ## in it`,
    ]);
    for (const [one, two] of steps.chunks) expect(two.actions).toEqual(one.actions);
  });
});
