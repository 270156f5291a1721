/** The control socket: the devices of the running service, and "health and drain" of each for its operator. */
import { afterEach, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DeviceFigures } from "../../../src/engine/engine.ts";
import { type Listener, listenLocal } from "../../../src/http/listen.ts";
import { type ControlledDevices, controlApp } from "../../../src/service/ops/control.ts";
import { Problem } from "../../../src/std/problem.ts";
import { stage } from "../../robot/stage.ts";

const figures = (device: string, changes: Partial<DeviceFigures> = {}): DeviceFigures => ({
  ...{ device, health: "ready", reason: null, replicas: 2, replicasOut: 0, inferences: 1, slots: 8, slotsHeld: 3 },
  framesWaiting: 0,
  ...changes,
});
const wire = (device: string, changes: object = {}) => ({
  ...{ device, health: "ready", replicas: 2, replicas_out: 0, inferences: 1, slots: 8, slots_held: 3 },
  ...changes,
});

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function folder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "tendon-control-"));
  ends.push(() => rm(dir, { recursive: true }));
  return dir;
}

async function control(devices: ControlledDevices, path: string): Promise<Pick<Listener, "stop">> {
  const { service } = await stage();
  const listener = listenLocal(controlApp(service.http, devices), path);
  if (listener instanceof Problem) throw new Error(listener.message);
  ends.push(() => listener.stop());
  return listener;
}

async function ask(path: string, method: string, route: string) {
  const reply = await fetch(`http://tendon${route}`, { method, unix: path });
  return { status: reply.status, body: (await reply.json()) as { error?: { code: string; message: string } } };
}

test("the devices are listed with their health; one is drained, and the answer says so", async () => {
  const path = join(await folder(), "control.sock");
  const drains: string[] = [];
  const health = () => (drains.length > 0 ? "draining" : "ready");
  await control(
    {
      figures: () => [figures("cuda:0"), figures("cuda:1", { health: health() }), lost],
      drain: (device) => {
        drains.push(device);
        return undefined;
      },
      resume: (device) => {
        drains.splice(drains.indexOf(device), 1);
        return undefined;
      },
    },
    path,
  );
  const lost = figures("cuda:2", { health: "lost", reason: "CUDA failure 700", replicasOut: 2 });
  const last = wire("cuda:2", { health: "lost", reason: "CUDA failure 700", replicas_out: 2 });
  expect(await ask(path, "GET", "/devices")).toEqual({
    status: 200,
    body: { devices: [wire("cuda:0"), wire("cuda:1"), last] } as never,
  });
  const devices = [wire("cuda:0"), wire("cuda:1", { health: "draining" }), last];
  expect(await ask(path, "POST", "/devices/cuda%3A1/drain")).toEqual({ status: 200, body: { devices } as never });
  expect(drains).toEqual(["cuda:1"]);
  const kept = [wire("cuda:0"), wire("cuda:1"), last];
  expect(await ask(path, "POST", "/devices/cuda:1/resume")).toEqual({ status: 200, body: { devices: kept } as never });
});

test("a device that is out or lost is not resumed, and the answer says what to do", async () => {
  const path = join(await folder(), "control.sock");
  const reason = "the replicas on cuda:0 are out; start the service again to use them";
  const lostOne = figures("cuda:2", { health: "lost", reason: "CUDA failure 700" });
  await control(
    {
      figures: () => [figures("cuda:0", { health: "drained" }), lostOne],
      drain: () => undefined,
      resume: () => new Problem(reason),
    },
    path,
  );
  const out = await ask(path, "POST", "/devices/cuda:0/resume");
  expect([out.status, out.body.error]).toEqual([
    409,
    { message: reason, type: "invalid_request_error", code: "device_not_resumed" } as never,
  ]);
  const lost = await ask(path, "POST", "/devices/cuda:2/resume");
  expect([lost.status, lost.body.error?.code]).toEqual([409, "device_not_resumed"]);
});

test("a device that nothing runs on, and one that a model needs, are refused with the reason", async () => {
  const path = join(await folder(), "control.sock");
  const reason = "cuda:0 cannot be drained: model m has no replica that works elsewhere";
  const lostOne = figures("cuda:2", { health: "lost", reason: "CUDA failure 700" });
  const refuse = () => new Problem(reason);
  await control({ figures: () => [figures("cuda:0"), lostOne], drain: refuse, resume: refuse }, path);
  const unknown = await ask(path, "POST", "/devices/cuda:7/drain");
  expect([unknown.status, unknown.body.error?.code]).toEqual([404, "device_unknown"]);
  expect(unknown.body.error?.message).toContain("the devices in use are: cuda:0, cuda:2");
  const refused = await ask(path, "POST", "/devices/cuda:0/drain");
  expect([refused.status, refused.body.error]).toEqual([
    409,
    { message: reason, type: "invalid_request_error", code: "device_not_drained" } as never,
  ]);
  const lost = await ask(path, "POST", "/devices/cuda:2/drain");
  expect([lost.status, lost.body.error?.message]).toEqual([
    409,
    "cuda:2 is lost and runs nothing any more: CUDA failure 700",
  ]);
  expect((await ask(path, "GET", "/metrics")).status).toBe(404);
});

test("before the engine is open nothing is drained", async () => {
  const path = join(await folder(), "control.sock");
  const never = () => {
    throw new Error("nothing is there to be drained");
  };
  await control({ figures: () => undefined, drain: never, resume: never }, path);
  for (const [method, route] of [
    ["GET", "/devices"],
    ["POST", "/devices/cuda:0/drain"],
    ["POST", "/devices/cuda:0/resume"],
  ] as const) {
    const { status, body } = await ask(path, method, route);
    expect([status, body.error?.code]).toEqual([503, "engine_unavailable"]);
  }
});

test("the socket replaces what a killed process has left, and goes with its process; its path may be long", async () => {
  const dir = await folder();
  const path = join(dir, "control.sock");
  await writeFile(path, "");
  const none: ControlledDevices = { figures: () => [], drain: () => undefined, resume: () => undefined };
  const listener = await control(none, path);
  expect((await ask(path, "GET", "/devices")).body).toEqual({ devices: [] } as never);
  await listener.stop();
  await expect(stat(path)).rejects.toThrow("ENOENT");
  // Longer than a socket's address is; and where none can be.
  await mkdir(join(dir, "x".repeat(120)));
  const long = join(dir, "x".repeat(120), "control.sock");
  await control(none, long);
  expect((await ask(long, "GET", "/devices")).status).toBe(200);
  const { service } = await stage();
  const app = controlApp(service.http, none);
  expect(listenLocal(app, join(dir, "none", "control.sock"))).toMatchObject({
    message: expect.stringContaining("cannot listen on"),
  });
});
