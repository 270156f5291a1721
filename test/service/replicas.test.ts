/** A replica that is out takes no more work; its sessions end, `/readyz` tells, and the service ends when none is left (contract section 2). */
import { beforeEach, expect, test } from "bun:test";
import type { DeviceFigures } from "../../src/engine/engine.ts";
import { LIMITS } from "../../src/limits.ts";
import { Replicas } from "../../src/service/replicas.ts";
import { Problem } from "../../src/std/problem.ts";
import { manifest, statefulManifest } from "../robot/manifests.ts";
import { CARTESIAN, MODEL, observation, RATES, STATEFUL, type Stage, stage, VECTOR } from "../robot/stage.ts";

let at: Stage;
let replicas: Replicas;

beforeEach(async () => {
  at = await stage();
  at.engine.replicasPerModel = 2;
  const { catalog, sessions } = at.service.robot;
  catalog.add(statefulManifest(), RATES, at.engine.model(statefulManifest()));
  replicas = new Replicas({ catalog, sessions, log: at.service.core.log });
  for (const { model } of catalog.models.values()) if (model) replicas.watch(model);
});

const chunk = async (session_id: string, chat = at.chat) => {
  const response = await chat(observation({ model: STATEFUL, session_id }));
  return { status: response.status, code: ((await response.json()) as { error?: { code: string } }).error?.code };
};
const freeSlots = () => at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount;
const ready = async () => {
  const response = await at.send("/readyz");
  return { ...((await response.json()) as object), status: response.status };
};

test("sessions on a lost replica answer 410, those on the other one go on, and capacity shrinks", async () => {
  // Each new session goes to the replica with the most free slots: the first to replica 0, the second to 1.
  expect(await chunk("on-0")).toEqual({ status: 200, code: undefined });
  expect(await chunk("on-1")).toEqual({ status: 200, code: undefined });
  expect(freeSlots()).toBe(2);
  at.engine.lose(STATEFUL, 0, "an inference had not ended after 15000 ms");
  expect(await chunk("on-0")).toEqual({ status: 410, code: "session_expired" });
  expect((await chunk("on-1")).code).not.toBe("session_expired");
  expect(freeSlots()).toBe(1);
  // The last slot of those that are left is kept for an account without a session.
  expect(await chunk("third")).toEqual({ status: 429, code: "no_replica_free" });
  const other = await at.account("acct_2");
  expect((await chunk("third", other)).status).toBe(200);
  expect(await chunk("fourth", other)).toEqual({ status: 429, code: "no_replica_free" });
  expect(at.engine.observations.map(({ slot }) => slot).filter((slot) => slot === 0 || slot === 1)).toHaveLength(1);
});

test("a session whose chunk runs while its replica goes out ends after it", async () => {
  let release = () => {};
  at.engine.script.start = () =>
    new Promise((resolve) => {
      release = resolve;
    });
  const running = chunk("on-0");
  while (at.engine.observations.length === 0) await Bun.sleep(0);
  at.engine.lose(STATEFUL, 0, "its thread ended");
  at.engine.script.run = async () => at.engine.fault("the replica of the inference is out");
  release();
  expect((await running).status).toBe(500);
  at.engine.script.start = async () => {};
  at.engine.script.run = async (observed) => at.engine.chunk(observed);
  // Its slot was not offered again.
  expect(freeSlots()).toBe(2);
});

test("readyz names the replica and the reason: 200 while the model has another one, 503 when it has none", async () => {
  const sentence = (replica: number, reason: string) =>
    `replica ${replica} of model ${STATEFUL} on fake is out: ${reason}`;
  // The runtime names the file of its source: of a path its last part is told.
  at.engine.lose(STATEFUL, 1, "its device failed: /onnxruntime_src/core/cuda_call.cc:129 CUDA failure 700");
  const first = sentence(1, "its device failed: cuda_call.cc:129 CUDA failure 700");
  expect(await ready()).toMatchObject({ status: 200, out: [first] });
  at.engine.lose(STATEFUL, 0, "its thread ended");
  const missing = [first, sentence(0, "its thread ended")];
  expect(await ready()).toMatchObject({ status: 503, missing });
  expect(at.logLines.filter((line) => line.startsWith("replica out"))).toHaveLength(2);
});

test("the service ends when no replica of any model is left, and not before", async () => {
  let over = false;
  replicas.noneLeft.then(() => {
    over = true;
  });
  for (const [model, replica] of [
    [STATEFUL, 0],
    [STATEFUL, 1],
    [MODEL, 0],
    [CARTESIAN, 0],
  ] as const) {
    at.engine.lose(model, replica, "its thread ended");
    await Bun.sleep(0);
    expect(over).toBe(false);
  }
  at.engine.lose(VECTOR, 0, "its thread ended");
  await replicas.noneLeft;
});

test("a lost model does not end the service while another one loads, but then if that one is lost too", async () => {
  const { catalog, sessions } = at.service.robot;
  catalog.models.clear();
  const [broken, late] = [at.engine.model(statefulManifest()), at.engine.model(manifest())];
  catalog.add(late.manifest, RATES);
  catalog.add(broken.manifest, RATES, broken);
  const watching = new Replicas({ catalog, sessions, log: at.service.core.log });
  let over = false;
  watching.noneLeft.then(() => {
    over = true;
  });
  watching.watch(broken);
  for (const replica of [0, 1]) at.engine.lose(STATEFUL, replica, "its thread ended");
  await Bun.sleep(0);
  expect(over).toBe(false);
  catalog.add(late.manifest, RATES, late);
  watching.watch(late);
  await Bun.sleep(0);
  expect(over).toBe(false);
  for (let replica = 0; replica < late.replicas; replica += 1) at.engine.lose(MODEL, replica, "its thread ended");
  await watching.noneLeft;
});

const working = (device: string): DeviceFigures => ({
  ...{ device, health: "ready", reason: null, replicas: 1, replicasOut: 0, inferences: 0, slots: 2, slotsHeld: 0 },
  framesWaiting: 0,
});

/** The stateful model with a replica on each of two devices. */
async function spread(): Promise<void> {
  at = await stage();
  Object.assign(at.engine, { replicasPerModel: 2, devicesPerModel: ["cuda:0", "tensorrt:1"] });
  const { catalog, sessions } = at.service.robot;
  catalog.models.clear();
  catalog.add(statefulManifest(), RATES, at.engine.model(statefulManifest()));
  replicas = new Replicas({ catalog, sessions, log: at.service.core.log });
  for (const { model } of catalog.models.values()) if (model) replicas.watch(model);
}

test("a device is drained when the sessions on it have ended: until then they go on, and new ones go elsewhere", async () => {
  await spread();
  expect(await chunk("on-0")).toEqual({ status: 200, code: undefined });
  expect(await chunk("on-1")).toEqual({ status: 200, code: undefined });
  let drained = false;
  const draining = Promise.resolve(replicas.drain("cuda:1", at.engine)).then((problem) => {
    drained = true;
    return problem;
  });
  expect(freeSlots()).toBe(1);
  expect((await chunk("on-1")).code).not.toBe("session_expired");
  expect([drained, at.engine.drains]).toEqual([false, []]);
  at.service.robot.sessions.end({ accountId: "acct_1", model: STATEFUL, sessionId: "on-1" });
  expect(await draining).toBeUndefined();
  // Both providers of a GPU are the same device.
  expect([at.engine.drains, freeSlots()]).toEqual([["cuda:1"], 1]);
  at.engine.lose(STATEFUL, 1, "cuda:1 was drained", "drained");
  const out = `replica 1 of model ${STATEFUL} on tensorrt:1 is out: cuda:1 was drained`;
  expect(await ready()).toMatchObject({ status: 200, out: [out] });
  expect(at.logLines.filter((line) => line.startsWith("replica"))).toEqual([
    expect.stringContaining("replica drained"),
  ]);
});

test("a device is not drained where a model has no replica that works elsewhere, and nothing changes then", async () => {
  await spread();
  at.engine.lose(STATEFUL, 0, "its thread ended");
  const refused = await replicas.drain("cuda:1", at.engine);
  expect(refused?.message).toContain(`model ${STATEFUL} has no replica that works elsewhere`);
  expect([at.engine.drains, freeSlots()]).toEqual([[], 2]);
  await spread();
  expect(await replicas.drain("cuda:0", at.engine)).toBeUndefined();
  expect((await replicas.drain("cuda:1", at.engine))?.message).toContain("stop the service");
});

test("a device is not drained while a model loads, and may be asked again where the engine refused", async () => {
  await spread();
  const { catalog } = at.service.robot;
  const late = at.engine.model(manifest());
  catalog.add(late.manifest, RATES);
  expect((await replicas.drain("cuda:1", at.engine))?.message).toContain("while models are loading");
  catalog.models.delete(late.manifest.id);
  const refusing = { drain: () => new Problem("model x has no other replica") };
  expect((await replicas.drain("cuda:1", refusing))?.message).toBe("model x has no other replica");
  expect(await replicas.drain("cuda:0", at.engine)).toBeUndefined();
});

test("a device that the engine does not let go takes new sessions again", async () => {
  await spread();
  expect((await chunk("on-0")).status).toBe(200);
  expect((await chunk("on-1")).status).toBe(200);
  const refusing = { drain: () => new Problem("model x has no other replica") };
  const draining = replicas.drain("cuda:1", refusing);
  at.engine.figures.push(working("cuda:0"), working("cuda:1"));
  expect(replicas.devices(at.engine).map(({ health }) => health)).toEqual(["ready", "draining"]);
  expect(freeSlots()).toBe(1);
  at.service.robot.sessions.end({ accountId: "acct_1", model: STATEFUL, sessionId: "on-1" });
  expect((await draining)?.message).toBe("model x has no other replica");
  expect(freeSlots()).toBe(3);
  expect(replicas.devices(at.engine).map(({ health }) => health)).toEqual(["ready", "ready"]);
  expect(at.logLines).toContainEqual(expect.stringContaining("device not drained"));
});

test("a device that is being emptied is taken back when the last replica elsewhere is lost: its sessions go on, and new ones come", async () => {
  await spread();
  expect((await chunk("on-0")).status).toBe(200);
  expect((await chunk("on-1")).status).toBe(200);
  const draining = replicas.drain("cuda:1", at.engine);
  expect(freeSlots()).toBe(1);
  at.engine.lose(STATEFUL, 0, "CUDA failure 700");
  expect((await draining)?.message).toBe(`model ${STATEFUL} has lost its last replica elsewhere and needs cuda:1`);
  expect([at.engine.drains, freeSlots()]).toEqual([[], 1]);
  at.engine.figures.push(working("cuda:1"));
  expect(replicas.devices(at.engine).map(({ health }) => health)).toEqual(["ready"]);
  expect((await chunk("on-1")).code).not.toBe("session_expired");
  expect((await chunk("new", await at.account("acct_2"))).status).toBe(200);
  expect(at.logLines).toContainEqual(expect.stringContaining("device not drained"));
});

test("a device whose sessions are awaited is kept when the operator resumes it: new sessions come again, and it may be drained anew", async () => {
  await spread();
  for (const session of ["on-0", "on-1"]) expect((await chunk(session)).status).toBe(200);
  expect(replicas.resume("cuda:1")).toBeUndefined();
  const draining = replicas.drain("cuda:1", at.engine);
  expect(freeSlots()).toBe(1);
  // The last session ends in the same turn: no new one may have got a slot that is then taken from it.
  at.service.robot.sessions.end({ accountId: "acct_1", model: STATEFUL, sessionId: "on-1" });
  expect(replicas.resume("tensorrt:1")).toBeUndefined();
  expect((await draining)?.message).toContain("the operator resumed it");
  expect([at.engine.drains, freeSlots()]).toEqual([[], 3]);
  at.engine.figures.push(working("cuda:1"));
  expect(replicas.devices(at.engine).map(({ health }) => health)).toEqual(["ready"]);
  expect(at.logLines.filter((line) => line.startsWith("device"))).toEqual([
    expect.stringContaining("device draining"),
    expect.stringContaining("device resumed"),
  ]);
  expect(await replicas.drain("cuda:1", at.engine)).toBeUndefined();
  expect(at.engine.drains).toEqual(["cuda:1"]);
  expect(replicas.resume("cuda:1")?.message).toContain("start the service again");
});

test("Retry-After counts no session on a device that is being emptied: its end makes no room", async () => {
  await spread();
  for (const session of ["on-0", "on-1"]) expect((await chunk(session)).status).toBe(200);
  at.service.robot.sessions.end({ accountId: "acct_1", model: STATEFUL, sessionId: "on-0" });
  at.clock.advance(20_000);
  // Both go to the first device, which has two free slots and then one, as the other has.
  for (const id of ["acct_2", "acct_3"]) expect((await chunk("late", await at.account(id))).status).toBe(200);
  const draining = replicas.drain("cuda:1", at.engine);
  expect(draining).not.toBeInstanceOf(Problem);
  const another = await at.account("acct_4");
  const response = await another(observation({ model: STATEFUL, session_id: "more" }));
  expect([response.status, response.headers.get("retry-after")]).toEqual([429, `${LIMITS.sessionIdleMs / 1000}`]);
});

test("the sessions of a device that is lost while it is drained are not waited for", async () => {
  await spread();
  for (const id of ["on-0", "on-1"]) await chunk(id);
  const draining = replicas.drain("cuda:1", at.engine);
  at.engine.lose(STATEFUL, 1, "device lost: CUDA failure 700", "device_lost");
  expect(await draining).toBeUndefined();
});
