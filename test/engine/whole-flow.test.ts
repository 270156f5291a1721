/** A device runs all steps of a flow as one graph: the CPU plays it, so that every number can be compared. */
import { afterEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ChunkResult } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, largestDifference, MODEL_DIR, parityOf } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import { variant, variantNames } from "../bundle/variants.ts";
import { Opened, ok, rowsOf } from "./opened.ts";
import { changed, type Rehearsal, rehearse } from "./wrong-provider.ts";

const NAMES = readdirSync(join(MODEL_DIR, "..")).sort();
const DEVICE = "cuda:0";
const F32_BYTES = 4;
/** With its time known a graph is folded further: some sums are taken in another order. */
const TOLERANCE = 1e-5;

const apart = ([one, two]: [ChunkResult, ChunkResult]) => largestDifference(rowsOf(one), rowsOf(two));

/** The bundle's episode on the CPU and on a device that the CPU plays. */
async function episode(bundle: FlowBundle, graphs: Rehearsal["graphs"] = {}) {
  await using cpu = await Opened.with(ok(await openEngine({ decodeThreads: 2 })), bundle, { slots: 1 });
  await rehearse({ device: DEVICE, graphs });
  const device = await Opened.with(cpu.engine, bundle, { slots: 1, device: DEVICE });
  const [own, played] = [await cpu.episode(), await device.episode()];
  const chunks = own.map(({ chunk }, index): [ChunkResult, ChunkResult] => [
    chunk,
    present(played[index], "the same chunk").chunk,
  ]);
  // The device runs all steps at once, the CPU one after the other.
  if (bundle.manifest.batch > 1) {
    const { given } = await parityOf(bundle);
    const both = (one: Opened) => Promise.all([0, 1].map((by) => one.give({ ...given, seed: given.seed + by })));
    const [alone, together] = [await both(cpu), await both(device)];
    alone.forEach((chunk, index) => {
      expect(apart([chunk, present(together[index], "the same chunk")])).toBeLessThan(TOLERANCE);
    });
  }
  const { copies, flow, flowReason } = device.model;
  expect([cpu.model.flow, cpu.model.flowReason]).toEqual(["steps", null]);
  return { chunks, copies, flow, flowReason, manifest: bundle.manifest };
}

afterEach(async () => await rehearse());

describe("all steps as one graph", () => {
  test.each(NAMES)("%s gives the rows of the steps one by one, resets included", async (name) => {
    const { chunks, flow, flowReason, manifest } = await episode(await bundleOf(name));
    expect([flow, flowReason]).toEqual(["whole", null]);
    for (const [one, two] of chunks) {
      expect(apart([one, two])).toBeLessThan(TOLERANCE);
      expect(two.cacheReset).toBe(one.cacheReset);
    }
    expect(chunks.some(([, two]) => two.cacheReset)).toBe(manifest.memory !== null);
  });

  test("one latent goes to the device and one comes back, however many steps there are", async () => {
    const { copies, manifest } = await episode(await bundleOf("molmoact2-yam"));
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
    const steps = await episode(await bundleOf("molmoact2-yam"), { [graphs.denoise.file]: broken });
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

const VARIANTS = await variantNames();
const CONTINUING = VARIANTS.filter((name) => name.startsWith("rtc"));

describe("variants as one graph", () => {
  test.each(VARIANTS.filter((name) => !CONTINUING.includes(name)))("%s, whose rows NumPy computed", async (name) => {
    const bundle = await variant(name);
    const { chunks, flow, flowReason } = await episode(bundle);
    expect([flow, flowReason]).toEqual(["whole", null]);
    const golden = await episodeOf(bundle);
    for (const [index, pair] of chunks.entries()) {
      expect(apart(pair)).toBeLessThan(TOLERANCE);
      expect(largestDifference(rowsOf(pair[1]), present(golden[index], "rows").actions)).toBeLessThan(1e-4);
    }
  });

  test.each(CONTINUING)(
    "%s tells a step of rows that the chunk continues: its steps are run one by one",
    async (name) => {
      const { chunks, flow, flowReason, manifest } = await episode(await variant(name));
      const reason = "it is told more of a step than a time that all rows have";
      expect([flow, flowReason]).toEqual([
        "steps",
        `${manifest.graphs.denoise.file} cannot become one graph: ${reason}`,
      ]);
      for (const pair of chunks) expect(apart(pair)).toBeLessThan(TOLERANCE);
    },
  );
});
