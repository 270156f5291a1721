/**
 * Watchdog (contract section 2): a replica whose inference hangs, whose thread ends or whose device fails takes no more work. Its
 * inferences end with an error, once each, and the other replicas go on.
 */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { DrillFault, LostReplica } from "../../src/engine/engine.ts";
import type { Fault } from "../../src/engine/fault.ts";
import { openEngine } from "../../src/engine/native.ts";
import { LIMITS } from "../../src/limits.ts";
import { bundleOf } from "../bundle/built.ts";
import { failed, Opened, ok } from "./opened.ts";
import { rehearseFault } from "./wrong-provider.ts";

/** The length of each hang. On `echo` an inference takes microseconds; on a busy CPU it must not look like a hang. */
const RUN_MS_MAX = { echo: 1_000, cpu: 5_000 } as const;
/** The bound of tests in which nothing is to hang. */
const LONG_MS = 60_000;
const STATEFUL = "dreamzero-astra-yam";
const bundle = await bundleOf("molmoact2-yam");
const opened: Opened[] = [];

async function on(
  device: keyof typeof RUN_MS_MAX,
  replicas: number,
  options: { slots?: number; name?: string; inferenceMsMax?: number } = {},
): Promise<Opened> {
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  const { slots, name, inferenceMsMax = RUN_MS_MAX[device] } = options;
  const of = name === undefined ? bundle : await bundleOf(name);
  const one = await Opened.with(engine, of, { device, replicas, slots, inferenceMsMax });
  opened.push(one);
  return one;
}

/** `close` must end although threads of some of these hang for ever. */
afterAll(async () => {
  for (const { engine } of opened) await engine.close();
});

function nextLost({ model }: Opened): Promise<LostReplica> {
  return new Promise((resolve) => model.whenLost(resolve));
}

const FAULTS: readonly (readonly [DrillFault | "die", string])[] = [
  ["hang", "an inference had not ended after"],
  ["die", "its thread ended"],
  ["device", "its device failed: CUDA failure 700"],
];

for (const [fault, reason] of FAULTS) {
  test(`${fault}: the replica is out with its reason, its inference ends, the other replica goes on`, async () => {
    const two = await on("echo", 2);
    const lost = nextLost(two);
    const observation = await two.observation(fault === "die" ? {} : { fault });
    if (fault === "die") await rehearseFault(fault);
    const run = ok(two.model.observe(observation));
    expect(await failed(run)).toMatchObject({ kind: "replica_out" });
    expect((await lost).reason).toStartWith(reason);
    expect(two.model.lost).toHaveLength(1);
    expect(two.engine.stats()).toMatchObject({ replicas: 2, replicas_out: 1, chunks_failed: 1 });
    for (let index = 0; index < 20; index += 1) expect((await two.chunk()).rows).toBe(30);
    const { frames_free, chunks_free } = two.engine.stats();
    expect({ frames_free, chunks_free }).toEqual({ frames_free: LIMITS.framesMax, chunks_free: LIMITS.chunksMax });
  });
}

/** A separate process, since it is stopped: says when its only replica hangs, then after how many ms that was taken out. */
const HANGS = `
  const { openEngine } = await import("./src/engine/native.ts");
  const { bundleOf } = await import("./test/bundle/built.ts");
  const { Opened, ok } = await import("./test/engine/opened.ts");
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  const one = await Opened.with(engine, await bundleOf("molmoact2-yam"), { device: "echo", inferenceMsMax: ${RUN_MS_MAX.echo} });
  const observation = await one.observation({ fault: "hang" });
  one.model.whenLost(() => {
    console.log(performance.now() - begun);
    process.exit(0);
  });
  const begun = performance.now();
  ok(one.model.observe(observation));
  console.log("hangs");
  // The engine alone does not keep a process.
  setTimeout(() => {}, ${LONG_MS});
`;

test("time in which the whole process is stopped does not count as time of an inference", async () => {
  const pauseMs = 2 * RUN_MS_MAX.echo;
  const cwd = join(import.meta.dir, "../..");
  await using child = Bun.spawn([process.execPath, "-e", HANGS], { cwd, stdout: "pipe", stderr: "inherit" });
  let said = "";
  for await (const bytes of child.stdout) {
    const begins = said === "";
    said += new TextDecoder().decode(bytes);
    if (!begins) continue;
    child.kill("SIGSTOP");
    await Bun.sleep(pauseMs);
    child.kill("SIGCONT");
  }
  const [hangs, lostMs] = said.trim().split("\n");
  expect(hangs).toBe("hangs");
  // Both clocks are rounded, and the pause begins and ends a little after it is asked for.
  expect(Number(lostMs)).toBeGreaterThan(pauseMs + RUN_MS_MAX.echo - 100);
});

test("the batch of a hung replica ends, so does what is queued, and the next inference is refused at once", async () => {
  const one = await on("echo", 1);
  const hung = ok(one.model.observe(await one.observation({ fault: "hang" })));
  const behind = [];
  for (let index = 0; index < 20; index += 1) behind.push(ok(one.model.observe(await one.observation())));
  for (const run of [hung, ...behind]) expect(await failed(run)).toMatchObject({ kind: "replica_out" });
  const refused = await one.observation();
  expect(one.model.observe(refused)).toMatchObject({ kind: "replica_out" });
  for (const frame of refused.frames) frame.drop();
  const { frames_free, chunks_free } = one.engine.stats();
  expect({ frames_free, chunks_free }).toEqual({ frames_free: LIMITS.framesMax, chunks_free: LIMITS.chunksMax });
});

test("an inference that hangs inside ONNX Runtime is ended, and the other replica's chunks keep their bits", async () => {
  const two = await on("cpu", 2);
  const before = await two.chunk();
  expect(await failed(ok(two.model.observe(await two.observation({ fault: "hang" }))))).toMatchObject({
    kind: "replica_out",
  });
  expect([...(await two.chunk()).actions]).toEqual([...before.actions]);
});

test("a hung thread that goes on late writes into no other slot and completes nothing twice", async () => {
  const two = await on("cpu", 2);
  const before = await two.chunk();
  const lost = nextLost(two);
  const observation = await two.observation({ seed: 77 });
  await rehearseFault("late");
  const late = ok(two.model.observe(observation));
  expect(await failed(late)).toMatchObject({ kind: "replica_out" });
  await lost;
  // The slot is the first one again. A second completion would be one of a ticket that nobody waits for, which throws.
  for (let index = 0; index < 20; index += 1) expect([...(await two.chunk()).actions]).toEqual([...before.actions]);
  expect(two.engine.stats().chunks_failed).toBe(1);
});

test("with episode memory, a lost replica refuses inferences of its slots and the other one runs its own", async () => {
  const two = await on("cpu", 2, { slots: 2, name: STATEFUL });
  const [dead, live] = [0, 2];
  const hung = ok(two.model.observe(await two.observation({ fault: "hang", slot: dead })));
  const queued = ok(two.model.observe(await two.observation({ slot: dead + 1 })));
  for (const run of [hung, queued]) expect(await failed(run)).toMatchObject({ kind: "replica_out" });
  expect(two.model.lost.map(({ replica }) => replica)).toEqual([0]);
  const refused = await two.observation({ slot: dead });
  expect(two.model.observe(refused)).toMatchObject({ kind: "replica_out" });
  for (const frame of refused.frames) frame.drop();
  expect((await two.chunk({ slot: live })).rows).toBe(two.bundle.manifest.action.rows);
});

test("close does not wait for a thread that hangs, and nothing is reported afterwards", async () => {
  const one = await on("echo", 1);
  const run = ok(one.model.observe(await one.observation({ fault: "hang" })));
  const result = run.result;
  // The replica is not out yet: closing waits for the bound, and no longer.
  await one.engine.close();
  opened.splice(opened.indexOf(one), 1);
  // The unloading of the model ends it, or its bound.
  expect(["cancelled", "replica_out"]).toContain(((await result) as Fault).kind);
});

test("a caught native panic costs one request, not its batch and not the process, and is counted", async () => {
  const one = await on("cpu", 1, { inferenceMsMax: LONG_MS });
  const before = await one.chunk();
  const panics = one.engine.stats().panics;
  const runs = [];
  for (const fault of [undefined, "panic", undefined] as const) {
    runs.push(ok(one.model.observe(await one.observation(fault === undefined ? {} : { fault }))));
  }
  const [first, panicked, third] = await Promise.all(runs.map((run) => run.result));
  expect(panicked).toMatchObject({ kind: "model_failed", detail: expect.stringContaining("panicked") });
  for (const chunk of [first, third])
    expect([...(ok(chunk as never) as typeof before).actions]).toEqual([...before.actions]);
  for (const run of runs) run.abort();
  expect(one.engine.stats()).toMatchObject({ panics: panics + 1, replicas_out: 0 });
});

test("one job's bad feed fails that job alone, not its batch", async () => {
  const one = await on("cpu", 1, { inferenceMsMax: LONG_MS });
  const before = await one.chunk();
  const observations = [];
  for (let index = 0; index < 6; index += 1) observations.push(await one.observation());
  const runs = [];
  for (const [index, observation] of observations.entries()) {
    if (index === 3) await rehearseFault("feed");
    runs.push(ok(one.model.observe(observation)));
  }
  const results = await Promise.all(runs.map((run) => run.result));
  for (const [index, result] of results.entries()) {
    if (index === 3) expect(result).toMatchObject({ kind: "model_failed" });
    else expect([...(ok(result) as typeof before).actions]).toEqual([...before.actions]);
  }
  for (const run of runs) run.abort();
});

test("views into engine memory die before it is closed: a chunk that is kept is a copy", async () => {
  const one = await on("cpu", 1, { inferenceMsMax: LONG_MS });
  const run = ok(one.model.observe(await one.observation()));
  const { actions } = ok(await run.result);
  const values = [...actions];
  run.commit();
  await run.released;
  opened.splice(opened.indexOf(one), 1);
  await one.engine.close();
  expect([...actions]).toEqual(values);
  // A view would show the whole slot, which is freed by now.
  expect(actions.buffer.byteLength).toBe(actions.byteLength);
});
