/**
 * "Each device has its own decode pool, run and session slots, health and drain; a list of devices in the configuration places replicas."
 * The CPU plays the GPUs (native/src/core/rehearsal.rs).
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Engine, LostReplica, Model } from "../../src/engine/engine.ts";
import { Fault } from "../../src/engine/fault.ts";
import { openEngine } from "../../src/engine/native.ts";
import { LIMITS } from "../../src/limits.ts";
import { present } from "../../src/std/assert.ts";
import { bundleOf } from "../bundle/built.ts";
import type { FlowBundle } from "../bundle/flow-bundle.ts";
import { failed, Opened, ok, refusal } from "./opened.ts";
import { type Rehearsal, rehearse, rehearseFault } from "./wrong-provider.ts";

const [ONE, TWO] = ["cuda:0", "cuda:1"];
const STATEFUL = "dreamzero-astra-yam";
let engine: Engine;

beforeEach(async () => {
  engine = ok(await openEngine({ decodeThreads: 2 }));
  await rehearse({ device: ONE }, { device: TWO }, { device: "tensorrt:1" });
});
afterEach(async () => {
  await rehearse();
  await engine.close();
});

/** A device pads every prompt to the longest, the CPU to a bucket: sums of other lengths may differ in their last bits. */
async function bundle(name = "molmoact2-yam"): Promise<FlowBundle> {
  const { manifest, paths } = await bundleOf(name);
  return { paths, manifest: { ...manifest, prompt: { ...manifest.prompt, buckets: [] } } };
}

async function on(device: readonly string[], name?: string): Promise<Opened> {
  return await Opened.with(engine, await bundle(name), { device, replicas: device.length, slots: 2 });
}

async function refusalOn(device: readonly string[], of?: FlowBundle): Promise<string> {
  return await refusal(engine, of ?? (await bundle()), { device, replicas: device.length, slots: 2 });
}

const lostOf = ({ model }: { model: Model }) =>
  model.lost.map(({ replica, device, cause }) => [replica, device, cause]);
const health = () => engine.devices().map(({ device, health }) => `${device} ${health}`);
const nextLost = ({ model }: Opened): Promise<LostReplica> => new Promise((resolve) => model.whenLost(resolve));

test("a list places a replica on each of its devices, each of which has computed the vectors", async () => {
  const spread = await on([ONE, TWO, "cpu"]);
  expect(spread.model).toMatchObject({ device: "cuda:0, cuda:1, cpu", devices: [ONE, TWO, "cpu"], replicas: 3 });
  expect(spread.model.parity).toHaveLength(1);
  expect(spread.model.deviceBytes).toBeGreaterThan(0);
  expect(engine.devices()).toMatchObject(
    [ONE, TWO, "cpu"].map((device) => ({
      device,
      health: "ready",
      reason: null,
      replicas: 1,
      replicasOut: 0,
      inferences: 0,
    })),
  );
});

test("an observation without memory takes any replica that is there, and the rows are the same on all", async () => {
  const spread = await on([ONE, TWO, "cpu"]);
  const alone = await spread.chunk();
  const chunks = await Promise.all(Array.from({ length: 12 }, () => spread.chunk()));
  for (const { actions } of chunks) expect([...actions]).toEqual([...alone.actions]);
  const { frames_free, chunks_free } = engine.stats();
  expect({ frames_free, chunks_free }).toEqual({ frames_free: LIMITS.framesMax, chunks_free: LIMITS.chunksMax });
  expect(engine.devices().every(({ framesWaiting, inferences }) => framesWaiting + inferences === 0)).toBe(true);
  // Which of them is first is chance; each is the only one in the end, or was one before.
  const served: number[] = [];
  for (let left = 3; left > 0; left -= 1) {
    const { actions, replica } = await spread.chunk();
    expect([...actions]).toEqual([...alone.actions]);
    expect(served).not.toContain(replica);
    served.push(replica);
    if (left === 1) break;
    expect(engine.drain(present(spread.model.devices[replica], "a device"))).toBeUndefined();
    while (spread.model.lost.length < served.length) await Bun.sleep(1);
  }
  expect(served.sort()).toEqual([0, 1, 2]);
});

test("a session with memory stays on the device of its slot, whose figures count it", async () => {
  const spread = await on([ONE, "cpu"], STATEFUL);
  for (const [slot, replica] of [
    [0, 0],
    [1, 0],
    [3, 1],
  ] as const) {
    expect((await spread.chunk({ slot })).replica).toBe(replica);
  }
  expect(engine.devices().map(({ device, slots, slotsHeld }) => [device, slots, slotsHeld])).toEqual([
    [ONE, 2, 2],
    ["cpu", 2, 1],
  ]);
});

test("a device of a list that computes wrongly, or is unknown, ends the load by its name", async () => {
  const wrong: Rehearsal = { device: TWO, stale: true };
  await rehearse({ device: ONE }, wrong);
  const message = await refusalOn([ONE, TWO, "cpu"]);
  expect(message).toMatch(/cannot be loaded: cuda:1: its rows are wrong: they differ by \d\.\de-?\d/);
  expect(message).not.toContain("cuda:0");
  expect(await refusalOn([ONE, "npu:0"])).toContain("unknown device 'npu:0'");
  expect(await refusalOn([ONE, "auto"])).toContain("'auto' stands in a list of devices");
  // What was proved on the other devices is gone with the load.
  expect(engine.devices()).toEqual([]);
});

test("a lost device takes its replicas of every model out at once; the others go on, and nothing is placed there", async () => {
  const [one, two] = [await on([ONE, TWO, TWO]), await on([TWO, "cpu"], STATEFUL)];
  expect((await two.chunk({ slot: 0 })).replica).toBe(0);
  const lost = nextLost(one);
  const run = ok(two.model.observe(await two.observation({ fault: "device", slot: 1 })));
  expect(await failed(run)).toMatchObject({ kind: "replica_out" });
  expect((await lost).reason).toStartWith("device lost: CUDA failure 700");
  expect([lostOf(one), lostOf(two)]).toEqual([
    [
      [1, TWO, "device_lost"],
      [2, TWO, "device_lost"],
    ],
    [[0, TWO, "device_lost"]],
  ]);
  for (let index = 0; index < 5; index += 1) expect((await one.chunk()).replica).toBe(0);
  expect((await two.chunk({ slot: 2 })).replica).toBe(1);
  expect(health()).toEqual(["cuda:0 ready", "cuda:1 lost", "cpu ready"]);
  expect(engine.stats()).toMatchObject({ replicas: 5, replicas_out: 3 });
  // Another provider of the same GPU finds it lost too.
  for (const device of [TWO, "tensorrt:1"]) {
    const message = await refusalOn([ONE, device]);
    expect(message).toContain(`cannot be loaded: device lost: ${device}: device lost: CUDA failure 700`);
    expect(message).toContain("restart the machine or name another device");
  }
});

test("on a processor, which does not fail by itself, a failure of that kind costs the one replica", async () => {
  const two = await on(["cpu", "cpu"]);
  await failed(ok(two.model.observe(await two.observation({ fault: "device" }))));
  expect(two.model.lost).toHaveLength(1);
  expect(two.model.lost[0]).toMatchObject({ cause: "replica_failed", device: "cpu" });
  expect((await two.chunk()).rows).toBe(30);
  expect(health()).toEqual(["cpu ready"]);
});

test("a drained device ends what it has and takes no more; then its replicas are out, and the others go on", async () => {
  const [one, two] = [await on([ONE, TWO, TWO]), await on([TWO, "cpu"], STATEFUL)];
  const before = await one.chunk();
  const observations = await Promise.all(Array.from({ length: 6 }, () => one.observation()));
  const runs = observations.map((observation) => ok(one.model.observe(observation)));
  const remembered = ok(two.model.observe(await two.observation({ slot: 0 })));
  expect(engine.drain(TWO)).toBeUndefined();
  expect(engine.drain(TWO)).toBeUndefined();
  for (const run of [...runs, remembered]) {
    expect(await run.result).not.toBeInstanceOf(Fault);
    run.commit();
    await run.released;
  }
  while (one.model.lost.length < 2 || two.model.lost.length < 1) await Bun.sleep(1);
  expect(one.model.lost.map(({ replica }) => replica).sort()).toEqual([1, 2]);
  expect(new Set([...one.model.lost, ...two.model.lost].map(({ cause, reason }) => `${cause}: ${reason}`))).toEqual(
    new Set(["drained: cuda:1 was drained"]),
  );
  expect(health()).toEqual(["cuda:0 ready", "cuda:1 drained", "cpu ready"]);
  for (let index = 0; index < 5; index += 1) {
    const { actions, replica } = await one.chunk();
    expect([replica, ...actions]).toEqual([0, ...before.actions]);
  }
  const refused = await two.observation({ slot: 1 });
  expect(two.model.observe(refused)).toMatchObject({ kind: "replica_out" });
  for (const frame of refused.frames) frame.drop();
  expect(await refusalOn([ONE, TWO])).toContain("cuda:1: it was drained");
});

test("a device is not drained where a model has no replica that works elsewhere, and an unknown one not at all", async () => {
  const spread = await on([ONE, TWO]);
  const only = await on([ONE]);
  expect(engine.drain(ONE)?.message).toMatch(/^cuda:0 cannot be drained: .* stop the service/);
  expect(engine.drain("cuda:7")?.message).toContain("no model runs on a device 'cuda:7'");
  expect(engine.drain(TWO)).toBeUndefined();
  expect((await spread.chunk()).replica).toBe(0);
  expect((await only.chunk()).rows).toBe(30);
});

test("an inference that finds no memory fails as such, and its replica goes on", async () => {
  const one = await on([ONE]);
  const observation = await one.observation();
  await rehearseFault("memory");
  const failure = await failed(ok(one.model.observe(observation)));
  expect(failure).toMatchObject({ kind: "out_of_memory" });
  expect([failure.message, failure.detail]).toEqual([
    expect.stringContaining("no memory left"),
    expect.stringContaining("CUDA failure 2: out of memory"),
  ]);
  expect((await one.chunk()).rows).toBe(30);
  expect(one.model.lost).toEqual([]);
});

test("a bundle that is not whole is told as a bad bundle, whatever the device", async () => {
  const { manifest, paths } = await bundle();
  const file = manifest.graphs.denoise.file;
  const broken = { manifest, paths: new Map([...paths, [file, present(paths.get(manifest.norm), "a file")]]) };
  for (const device of [["cpu"], [ONE, "cpu"]]) {
    const message = await refusalOn(device, broken);
    expect(message).toMatch(/cannot be loaded: bad bundle: .*; build or fetch the bundle again$/);
  }
  const nameless = { manifest: { ...manifest, export_id: "not hexadecimal" }, paths };
  expect(await refusalOn(["cpu"], nameless)).toContain("cannot be loaded: bad bundle: export_id");
});
