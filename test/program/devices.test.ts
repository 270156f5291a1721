/** `tendon devices` and the service of the same data folder, as processes. */
import { expect, test } from "bun:test";
import { chmod, mkdir, stat } from "node:fs/promises";
import { EXIT } from "../../src/std/problem.ts";
import { Place } from "./program.ts";

test("the operator sees the devices of the running service; the only one is not taken from its models", async () => {
  await using place = await Place.make();
  const data = ["--data", place.path("data")];
  const server = await place.serve(data);
  const listed = await place.run(["devices", "--json", ...data]);
  expect(listed.code).toBe(EXIT.done);
  const { devices } = JSON.parse(listed.stdout);
  expect(devices).toEqual([expect.objectContaining({ device: "cpu", health: "ready", replicas_out: 0 })]);
  const refused = await place.run(["devices", "--drain", "cpu", ...data]);
  expect([refused.code, refused.stderr]).toEqual([
    EXIT.failed,
    expect.stringContaining("has no replica that works elsewhere"),
  ]);
  const unknown = await place.run(["devices", "--drain", "cuda:7", ...data]);
  expect([unknown.code, unknown.stderr]).toEqual([EXIT.failed, expect.stringContaining("the devices in use are: cpu")]);
  // Its owner alone may open the folder, and so may use it.
  expect((await stat(place.path("data"))).mode & 0o077).toBe(0);
  expect((await stat(place.path("data/control.sock"))).mode & 0o077).toBe(0);
  server.child.kill("SIGKILL");
  await server.child.exited;
  expect((await place.run(["devices", ...data])).code).toBe(EXIT.unreachable);
  const next = await place.serve(data);
  expect((await place.run(["devices", ...data])).code).toBe(EXIT.done);
  await next.stop();
  expect((await place.run(["devices", ...data])).code).toBe(EXIT.unreachable);
});

test("a service whose control socket cannot be made serves without it, and says so", async () => {
  await using place = await Place.make();
  await mkdir(place.path("data/control.sock/in-the-way"), { recursive: true, mode: 0o700 });
  await chmod(place.path("data"), 0o700);
  const server = await place.serve(["--data", place.path("data")]);
  expect((await fetch(`${server.ready.url}/readyz`)).status).toBe(200);
  const { code, stderr } = await place.run(["devices", "--data", place.path("data")]);
  expect([code, stderr]).toEqual([
    EXIT.unreachable,
    expect.stringContaining("The log of a service says why it has no control socket"),
  ]);
  await server.stop();
  expect(await server.child.stderr.text()).toContain("no control socket");
});
