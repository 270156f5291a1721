/** Which key is in use, as `status`, `token`, `login` and `logout` see it; as child processes with a fresh HOME each. */
import { expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { EXIT } from "../../src/std/problem.ts";
import { FakeService } from "../client/fake-service.ts";
import { Place } from "../program/program.ts";
import { fileOf, gone, prefixOf, run, signedIn } from "./place.ts";

test("status exits with 0 for a good key, 3 for a revoked one or none, 4 where nobody answers, 2 for a bad address", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  expect((await run(place, service, "status")).code).toBe(EXIT.notSignedIn);
  const key = await signedIn(place, service);
  const facts = { prefix: prefixOf(key), base_url: service.url, source: "credentials" };
  const good = await run(place, service, "status --json");
  expect([good.code, JSON.parse(good.stdout)]).toEqual([EXIT.done, { ...facts, valid: true }]);
  service.active.delete(key);
  const revoked = await run(place, service, "status --json");
  const refused = { ...facts, valid: false, code: "invalid_api_key" };
  expect([revoked.code, JSON.parse(revoked.stdout)]).toEqual([EXIT.notSignedIn, refused]);
  expect(revoked.stderr).toContain("tendon login");
  expect(await run(place, service, "status")).toMatchObject({
    code: EXIT.notSignedIn,
    stdout: expect.stringContaining(prefixOf(key)),
    stderr: expect.stringContaining("invalid_api_key"),
  });
  expect((await run(place, service, "status --base-url nonsense")).code).toBe(EXIT.usage);
  expect((await run(place, service, "status", { TENDON_BASE_URL: "ftp://x" })).code).toBe(EXIT.usage);
  await service.stop();
  expect((await run(place, service, "status")).code).toBe(EXIT.unreachable);
});

test("a key does not follow a redirect", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const key = service.makeKey();
  let asked = 0;
  await using elsewhere = Bun.serve({
    port: 0,
    fetch: () => {
      asked++;
      return Response.json({ object: "list", data: [] });
    },
  });
  const target = `http://127.0.0.1:${elsewhere.port}/v1/models`;
  await using pointing = Bun.serve({ port: 0, fetch: () => Response.redirect(target, 307) });
  const env = { TENDON_API_KEY: key, TENDON_BASE_URL: `http://127.0.0.1:${pointing.port}` };
  const ended = await run(place, service, "status", env);
  expect(ended).toMatchObject({ code: EXIT.failed, stderr: expect.stringContaining(target) });
  expect(asked).toBe(0);
});

test("the environment's key wins, is said to, and is never revoked; a text that is no key is not shown", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const [saved, ours] = [await signedIn(place, service), service.makeKey()];
  const env = { TENDON_API_KEY: ours };
  const { stdout } = await run(place, service, "status --json", env);
  expect(JSON.parse(stdout)).toMatchObject({ prefix: prefixOf(ours), source: "environment", valid: true });
  expect((await place.run(["token"], env)).stdout).toBe(`${ours}\n`);
  expect((await run(place, service, "login", env)).stderr).toContain("TENDON_API_KEY is set");
  expect(await run(place, service, "logout", env)).toMatchObject({
    code: EXIT.done,
    stderr: expect.stringContaining("TENDON_API_KEY"),
  });
  expect(service.revoked).toEqual([saved]);
  const none = await run(place, service, "logout", env);
  expect(none).toMatchObject({ code: EXIT.notSignedIn, stderr: expect.stringContaining("TENDON_API_KEY") });
  expect(service.active.has(ours)).toBe(true);
  for (const odd of ["somebody-else's-secret-in-the-wrong-place", "two words\nand-lines-in-a-secret"]) {
    service.keys.push(odd);
    const away = { TENDON_API_KEY: odd, TENDON_BASE_URL: service.url };
    expect((await run(place, service, "status", away)).code).toBe(EXIT.notSignedIn);
  }
});

test("a credentials file that others can read is used by no command; logout --local removes it", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  await signedIn(place, service);
  await chmod(fileOf(place), 0o640);
  for (const [command, code] of [
    ["token", EXIT.notSignedIn],
    ["status", EXIT.notSignedIn],
    ["logout", EXIT.notSignedIn],
    ["login", EXIT.failed],
  ] as const) {
    const ended = await run(place, service, command);
    expect([command, ended]).toMatchObject([command, { code, stderr: expect.stringContaining("chmod 600 ") }]);
  }
  expect([service.calls, service.active.size]).toEqual([[], 1]);
  expect((await run(place, service, "logout --local")).code).toBe(EXIT.done);
  expect(await gone(fileOf(place))).toBe(true);
});
