/**
 * Right numbers on every device: "a deliberately wrong provider in a test (inputs not rebound, one weight flipped, f16 where f32 is due)
 * is refused". `auto` takes the next device, a named one fails the load with the measured difference.
 */
import { expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Manifest } from "../../src/bundle/manifest.ts";
import { decodeModel, type ModelProto } from "../../src/bundle/onnx-schema.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf, episodeOf, MODEL_DIR } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import { memoryOf } from "./memory.ts";
import { Opened, ok, refusal } from "./opened.ts";
import {
  changed,
  flipWeight,
  halfPrecision,
  type Rehearsal,
  rehearse,
  rehearsedEngine,
  weightsOf,
} from "./wrong-provider.ts";

const GPU = "cuda:0";
const engine = await rehearsedEngine();

type Wrong = Omit<Rehearsal, "device">;

/** Refused by name, with the difference and what to do. */
async function expectRefused(bundle: FlowBundle, wrong: Wrong, reason: RegExp): Promise<void> {
  await rehearse({ device: GPU, ...wrong });
  const named = await refusal(engine, bundle, { device: GPU, slots: 2 });
  expect(named).toMatch(reason);
  expect(named).toContain("name another device");
}

/** Passed over by `auto`, which says why. */
async function expectPassedOver(bundle: FlowBundle, wrong: Wrong, reason: RegExp): Promise<void> {
  await rehearse({ device: GPU, ...wrong });
  const { model: fallen } = await Opened.with(engine, bundle, { device: "auto", slots: 2 });
  expect(fallen.device).toBe("cpu");
  expect(fallen.refused.find(({ device }) => device === GPU)?.reason).toMatch(reason);
  await fallen.unload();
}

const WRONG_ROWS = /its rows are wrong: they differ by \d\.\de-?\d .* expected at most 1\.0e-4/;

const graphFiles = ({ graphs }: Manifest): string[] => Object.values(graphs).map(({ file }) => file);

async function changedAll(bundle: FlowBundle, change: (model: ModelProto) => void): Promise<Record<string, string>> {
  const entries = graphFiles(bundle.manifest).map(async (file) => [file, await changed(bundle, file, change)]);
  return Object.fromEntries(await Promise.all(entries));
}

for (const name of await readdir(join(MODEL_DIR, ".."))) {
  test(`${name}: a device that copies inputs when they are bound gives the bits of the CPU, since what changed is bound again`, async () => {
    const { manifest, paths } = await bundleOf(name);
    // A device pads every prompt to the longest, the CPU to a bucket: sums of other lengths may differ in their last bits.
    const bundle = { paths, manifest: { ...manifest, prompt: { ...manifest.prompt, buckets: [] } } };
    await rehearse({ device: GPU });
    const [cpu, gpu] = [
      await Opened.with(engine, bundle, { slots: 2 }),
      await Opened.with(engine, bundle, { slots: 2, device: GPU }),
    ];
    expect([cpu.model.device, gpu.model.device]).toEqual(["cpu", GPU]);
    // Its caches lie in memory that the host does not touch.
    expect(cpu.model).toMatchObject({ deviceBytes: 0, copies: { toDevice: 0, fromDevice: 0 } });
    expect(gpu.model.deviceBytes).toBeGreaterThan(0);
    const slot = manifest.memory === null ? {} : { slot: 1 };
    for (const { given } of await episodeOf(bundle)) {
      const other = { ...given, seed: given.seed + 1 };
      const [one, two] = [await cpu.give(other, slot), await gpu.give(other, slot)];
      expect([...two.actions]).toEqual([...one.actions]);
    }
    for (const { model } of [cpu, gpu]) await model.unload();
  });

  test(`${name}: inputs not rebound are refused by name, and auto takes the CPU`, async () => {
    const bundle = await bundleOf(name);
    await expectRefused(bundle, { stale: true }, WRONG_ROWS);
    await expectPassedOver(bundle, { stale: true }, WRONG_ROWS);
  });

  test(`${name}: f16 where f32 is due is refused`, async () => {
    const bundle = await bundleOf(name);
    await expectRefused(bundle, { graphs: await changedAll(bundle, halfPrecision) }, WRONG_ROWS);
  });

  test(`${name}: one weight flipped, in each of its graphs, is refused`, async () => {
    const bundle = await bundleOf(name);
    for (const file of graphFiles(bundle.manifest)) {
      const weights = weightsOf(decodeModel(await readFile(present(bundle.paths.get(file), file))));
      const weight = present(weights.at(-1), "a weight");
      await expectRefused(bundle, { graphs: { [file]: await changed(bundle, file, flipWeight(weight)) } }, WRONG_ROWS);
    }
  });
}

test("the vectors run on every replica, and each one's difference is told", async () => {
  const bundle = await bundleOf("dreamzero-astra-yam");
  await rehearse();
  const { model } = await Opened.with(engine, bundle, { replicas: 2, slots: 2 });
  expect(model.parity).toHaveLength(6);
  expect(model.parity.every((difference) => difference >= 0 && difference < 1e-4)).toBe(true);
  expect([memoryOf(model, 0).frames, memoryOf(model, 2).frames]).toEqual([0, 0]);
  await model.unload();
});

test("auto passes over a device whose first inference fails, as one that cannot be opened", async () => {
  const bundle = await bundleOf("molmoact2-yam");
  const graphs = await changedAll(bundle, ({ graph }) => {
    for (const tensor of graph.initializer.filter(({ dataType, dims }) => dataType === 1 && dims.length > 1)) {
      tensor.rawData = new Uint8Array(new Float32Array(tensor.rawData.length / 4).fill(Number.NaN).buffer);
    }
  });
  await expectPassedOver(bundle, { graphs }, /its first run gave numbers that are not finite/);
  const nothing = join(import.meta.dir, "no-such-graph.onnx");
  await expectPassedOver(bundle, { graphs: { "denoise.onnx": nothing } }, /no-such-graph/);
});

test("parity vectors that the CPU does not compute fail the load, whatever the device", async () => {
  await rehearse();
  const bundle = await bundleOf("molmoact2-yam");
  const graphs = await changed(bundle, "denoise.onnx", flipWeight("expert.blocks.0.output.weight"));
  const damaged = { ...bundle, paths: new Map([...bundle.paths, ["denoise.onnx", graphs]]) };
  for (const device of ["cpu", "auto"]) expect(await refusal(engine, damaged, { device })).toMatch(WRONG_ROWS);
});

test("a load on two devices ends when one is refused and the first inference of the other does not end", async () => {
  const bundle = await bundleOf("molmoact2-yam");
  const both = ok(await openEngine({ decodeThreads: 1 }));
  for (const [hangs, other] of [
    ["cuda:0", "cuda:1"],
    ["cuda:1", "cuda:0"],
  ] as const) {
    await rehearse({ device: hangs, hangs: true, proof_ms_max: 1_000 }, { device: other, stale: true });
    const message = await refusal(both, bundle, { device: ["cuda:0", "cuda:1"], replicas: 2 });
    expect(message).toContain(`${hangs}: its first runs had not ended after 1000 ms`);
    expect(message).toContain(`${other}: its rows are wrong`);
  }
  await both.close();
});

test("a device whose first inference hangs is reported in time, delays no other load, and does not keep the engine open", async () => {
  const bundle = await bundleOf("molmoact2-yam");
  const hanging = ok(await openEngine({ decodeThreads: 1 }));
  await rehearse({ device: GPU, hangs: true, proof_ms_max: 50 });
  const said = "its first runs had not ended after 50 ms";
  expect(await refusal(hanging, bundle, { device: GPU, replicas: 2 })).toContain(`${GPU}: ${said}`);
  // Another device computes in other memory: the thread that hangs may go on with the first.
  const { model: next } = await Opened.with(hanging, bundle, { device: "auto", replicas: 2 });
  expect([next.device, next.refused.find(({ device }) => device === GPU)?.reason]).toEqual(["cpu", said]);
  await rehearse();
  const { model: healthy } = await Opened.with(hanging, bundle);
  expect(healthy.parity).toHaveLength(1);
  await hanging.close();
});
