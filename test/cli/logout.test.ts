/** `tendon logout` as a child process with a fresh HOME. */
import { expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { EXIT } from "../../src/std/problem.ts";
import { FakeService } from "../client/fake-service.ts";
import { Place } from "../program/program.ts";
import { fileOf, gone, prefixOf, run, signedIn } from "./place.ts";

test("logout revokes the key at its service and removes the file", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const key = await signedIn(place, service);
  const { code, stdout } = await run(place, service, "logout --json");
  const facts = { prefix: prefixOf(key), base_url: service.url, revoked: true, credentials: fileOf(place) };
  expect([code, JSON.parse(stdout)]).toEqual([EXIT.done, facts]);
  expect([service.revoked, await gone(fileOf(place))]).toEqual([[key], true]);
  expect((await run(place, service, "logout")).code).toBe(EXIT.notSignedIn);
});

test("a logout at another service, or at what is none, keeps the key: neither of them has revoked it", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  await using other = new FakeService();
  await using page = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("<p>hello</p>") });
  const key = await signedIn(place, service);
  expect((await run(place, service, `logout --base-url ${other.url}`)).code).toBe(EXIT.notSignedIn);
  expect((await run(place, service, `logout --base-url http://127.0.0.1:${page.port}`)).code).toBe(EXIT.failed);
  expect([service.active.has(key), await gone(fileOf(place))]).toEqual([true, false]);
  // At its service, a key that is dead already is only removed.
  service.active.delete(key);
  expect((await run(place, service, "logout")).code).toBe(EXIT.done);
  expect([service.revoked, await gone(fileOf(place))]).toEqual([[], true]);
});

test("a logout that cannot revoke keeps the file; --local removes it and says that the key stays active", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const key = await signedIn(place, service);
  const before = await readFile(fileOf(place), "utf8");
  expect((await run(place, service, "logout --base-url https://robots.example.org")).code).toBe(EXIT.notSignedIn);
  expect((await run(place, service, "logout --local --base-url https://robots.example.org")).code).toBe(
    EXIT.notSignedIn,
  );
  await service.stop();
  const away = await run(place, service, "logout");
  expect(away).toMatchObject({ code: EXIT.unreachable, stderr: expect.stringContaining("--local") });
  expect(await readFile(fileOf(place), "utf8")).toBe(before);
  const local = await run(place, service, "logout --local");
  expect(local).toMatchObject({ code: EXIT.done, stdout: expect.stringContaining("stays active") });
  expect([await gone(fileOf(place)), service.active.has(key), service.calls]).toEqual([true, true, []]);
  expect((await run(place, service, "logout --local")).code).toBe(EXIT.notSignedIn);
});
