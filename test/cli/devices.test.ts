/** `tendon devices` against a control socket whose service answers what the test says. */
import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { EXIT } from "../../src/std/problem.ts";
import { Place } from "../program/program.ts";

const used = (device: string, health: string, changes: object = {}) => ({
  ...{ device, health, replicas: 2, replicas_out: 0, inferences: 0, slots: 8, slots_held: 3 },
  ...changes,
});

/** Answers each question with the next of `healths`, the last one for good. */
async function answering(place: Place, healths: readonly string[]) {
  const unix = place.path("data/control.sock");
  await mkdir(dirname(unix), { recursive: true });
  const asked: string[] = [];
  const server = Bun.serve({
    unix,
    fetch: ({ method, url }) => {
      asked.push(`${method} ${decodeURIComponent(new URL(url).pathname)}`);
      const health = healths[Math.min(asked.length, healths.length) - 1] ?? "ready";
      const reason = health === "lost" ? { reason: "CUDA failure 700" } : {};
      return Response.json({ devices: [used("cuda:0", "ready"), used("cuda:1", health, { slots: 0, ...reason })] });
    },
  });
  return { asked, [Symbol.asyncDispose]: () => server.stop(true) };
}

test("it shows what each device holds; --json as the service says it", async () => {
  await using place = await Place.make();
  await using service = await answering(place, ["lost"]);
  const { code, stdout } = await place.run(["devices", "--data", place.path("data")]);
  expect([code, stdout.split("\n")]).toEqual([
    EXIT.done,
    [
      "DEVICE  HEALTH  REPLICAS  INFERENCES  SESSIONS",
      "cuda:0  ready          2           0    3 of 8",
      "cuda:1  lost           2           0         -  CUDA failure 700",
      "",
    ],
  ]);
  const json = await place.run(["devices", "--json", "--data", place.path("data")]);
  expect(JSON.parse(json.stdout)).toEqual({
    devices: [used("cuda:0", "ready"), used("cuda:1", "lost", { slots: 0, reason: "CUDA failure 700" })],
  });
  expect(service.asked).toEqual(["GET /devices", "GET /devices"]);
});

test("--drain asks once and ends; with --wait it ends when the device is drained, or says that it is not", async () => {
  await using place = await Place.make();
  const data = ["--data", place.path("data")];
  {
    await using service = await answering(place, ["draining"]);
    // Both providers of a GPU are the same device.
    const { code, stdout } = await place.run(["devices", "--drain", "tensorrt:1", ...data]);
    expect([code, service.asked]).toEqual([EXIT.done, ["POST /devices/cuda:1/drain"]]);
    expect(stdout).toContain("cuda:1  draining");
  }
  {
    await using service = await answering(place, ["draining", "draining", "drained"]);
    const { code, stdout } = await place.run(["devices", "--drain", "cuda:1", "--wait", ...data]);
    expect(service.asked).toEqual(["POST /devices/cuda:1/drain", "GET /devices", "GET /devices"]);
    expect([code, stdout]).toEqual([EXIT.done, expect.stringContaining("cuda:1  drained")]);
  }
  for (const end of ["lost", "ready"]) {
    await using _service = await answering(place, ["draining", end]);
    const { code, stderr } = await place.run(["devices", "--drain", "cuda:1", "--wait", ...data]);
    expect([code, stderr]).toEqual([EXIT.failed, expect.stringContaining(`cuda:1 is ${end}, not drained`)]);
  }
});

test("--resume asks to keep a device that is being drained", async () => {
  await using place = await Place.make();
  await using service = await answering(place, ["ready"]);
  const { code, stdout } = await place.run(["devices", "--resume", "cuda:1", "--data", place.path("data")]);
  expect([code, service.asked]).toEqual([EXIT.done, ["POST /devices/cuda:1/resume"]]);
  expect(stdout).toContain("cuda:1  ready");
  const both = await place.run(["devices", "--drain", "cuda:1", "--resume", "cuda:1"]);
  expect([both.code, both.stderr]).toEqual([EXIT.usage, expect.stringContaining("name one of them")]);
});

test("without a service, and with --wait alone, it says what to do", async () => {
  await using place = await Place.make();
  const nobody = await place.run(["devices", "--data", place.path("data")]);
  expect([nobody.code, nobody.stderr]).toEqual([EXIT.unreachable, expect.stringContaining("start tendon serve")]);
  const alone = await place.run(["devices", "--wait"]);
  expect([alone.code, alone.stderr]).toEqual([EXIT.usage, expect.stringContaining("--drain")]);
});
