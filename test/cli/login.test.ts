/** `tendon login` as a child process with a fresh HOME. */
import { expect, test } from "bun:test";
import { stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { readCredentials, writeCredentials } from "../../src/account/credentials.ts";
import { newKey } from "../../src/account/key.ts";
import { deviceName } from "../../src/client/oauth.ts";
import { EXIT } from "../../src/std/problem.ts";
import { FakeService, refuse } from "../client/fake-service.ts";
import { Place } from "../program/program.ts";
import { fileOf, gone, prefixOf, run, signedIn } from "./place.ts";

test("login shows a link and a code, waits for the person, and saves the key for its owner alone", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  service.polls = [() => refuse("authorization_pending")];
  const ended = await run(place, service, `login --base-url ${service.url}/`);
  const [key] = service.keys as [string];
  expect(ended).toMatchObject({ code: EXIT.done, stderr: "" });
  expect(ended.stdout).toContain(`\n    ${service.url}/device?user_code=BCDF-GHJK\n`);
  expect(ended.stdout).toContain("\n    BCDF-GHJK\n");
  expect(ended.stdout).toContain(prefixOf(key));
  expect(await readCredentials(fileOf(place))).toEqual({ base_url: service.url, api_key: key });
  const modes = await Promise.all([fileOf(place), dirname(fileOf(place))].map((path) => stat(path)));
  expect(modes.map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o700]);
  const type = expect.stringMatching(/^application\/x-www-form-urlencoded/);
  const poll = {
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    device_code: "the-device-code",
    client_id: "tendon-cli",
  };
  const begin = { client_id: "tendon-cli", device_name: deviceName(hostname()) };
  expect(service.calls).toEqual([
    { path: "/oauth/device_authorization", form: begin, type },
    { path: "/oauth/token", form: poll, type },
    { path: "/oauth/token", form: poll, type },
  ]);
  // The one command that prints the key.
  expect(await place.run(["token"])).toEqual({ code: EXIT.done, stdout: `${key}\n`, stderr: "" });
  const status = await run(place, service, "status");
  expect(status).toMatchObject({ code: EXIT.done, stdout: expect.stringContaining(prefixOf(key)) });
});

test("login --json prints the code and the end as one object per line", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const { code, stdout } = await run(place, service, "login --json", { TENDON_BASE_URL: service.url });
  expect(code).toBe(EXIT.done);
  const lines = stdout.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    {
      event: "code",
      user_code: "BCDF-GHJK",
      verification_uri: `${service.url}/device`,
      verification_uri_complete: `${service.url}/device?user_code=BCDF-GHJK`,
      expires_in: 900,
    },
    {
      event: "signed_in",
      prefix: prefixOf(service.keys[0] ?? ""),
      base_url: service.url,
      credentials: fileOf(place),
    },
  ]);
});

test("a machine already signed in keeps its key; one whose key is dead gets another", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const key = await signedIn(place, service);
  const kept = await run(place, service, "login");
  expect(kept).toMatchObject({ code: EXIT.done, stdout: expect.stringContaining("Already signed in") });
  const { stdout } = await run(place, service, "login --json");
  const end = { event: "signed_in", prefix: prefixOf(key), base_url: service.url, credentials: fileOf(place) };
  expect(JSON.parse(stdout)).toEqual({ ...end, kept: true });
  expect([service.calls, await readCredentials(fileOf(place))]).toEqual([[], { base_url: service.url, api_key: key }]);
  // The key is good, so this is its service, wherever on this machine it answers now.
  await writeCredentials(fileOf(place), { base_url: "http://127.0.0.1:1", api_key: key });
  expect((await run(place, service, `login --base-url ${service.url}`)).code).toBe(EXIT.done);
  expect(await readCredentials(fileOf(place))).toEqual({ base_url: service.url, api_key: key });
  service.active.clear();
  expect((await run(place, service, "login")).code).toBe(EXIT.done);
  expect(await readCredentials(fileOf(place))).toEqual({ base_url: service.url, api_key: service.keys[1] ?? "" });
});

test("login does not write over a key of another service", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  for (const home of ["https://robots.example.org", "http://127.0.0.1:1"]) {
    const saved = { base_url: home, api_key: newKey(0).key };
    await writeCredentials(fileOf(place), saved);
    const ended = await run(place, service, `login --base-url ${service.url}`);
    expect(ended).toMatchObject({
      code: EXIT.failed,
      stderr: expect.stringContaining(`tendon logout --base-url ${home}`),
    });
    expect(await readCredentials(fileOf(place))).toEqual(saved);
  }
  expect(service.calls).toEqual([]);
});

test("login exits with 4 where nobody answers and 2 for an address that is none; neither loses the saved key", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  await service.stop();
  expect((await run(place, service, `login --base-url ${service.url}`)).code).toBe(EXIT.unreachable);
  const key = await signedIn(place, service);
  expect((await run(place, service, "login")).code).toBe(EXIT.unreachable);
  for (const bad of ["ftp://x", "localhost:8080", "http://u:p@localhost", "http://localhost/?a"]) {
    expect((await run(place, service, `login --base-url ${bad}`)).code).toBe(EXIT.usage);
  }
  expect(await readCredentials(fileOf(place))).toMatchObject({ api_key: key });
});

test("a login that is denied or expired exits with 1 and says so", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  for (const [error, words] of [
    ["access_denied", "no key was made: see the specification"],
    ["expired_token", "expired"],
  ] as const) {
    service.polls = [() => refuse(error)];
    const ended = await run(place, service, `login --base-url ${service.url}`);
    expect(ended).toMatchObject({ code: EXIT.failed, stderr: expect.stringContaining(words) });
  }
  expect(await gone(fileOf(place))).toBe(true);
});

test("a key that cannot be saved is revoked again", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  service.polls = [
    async () => {
      await writeFile(join(place.home, ".config"), "in the way of the folder");
      return Response.json({ access_token: service.makeKey(), token_type: "Bearer" });
    },
  ];
  const ended = await run(place, service, `login --base-url ${service.url}`);
  expect(ended).toMatchObject({ code: EXIT.failed, stderr: expect.stringContaining("revoked again") });
  expect([service.revoked, service.active.size]).toEqual([service.keys, 0]);
  expect(service.calls.at(-1)?.form).toMatchObject({ token_type_hint: "access_token", client_id: "tendon-cli" });
});

test("a key that was saved by somebody else during the login is kept, and the new one revoked", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const saved = { base_url: "http://127.0.0.1:1", api_key: newKey(0).key };
  service.polls = [
    async () => {
      await writeCredentials(fileOf(place), saved);
      return Response.json({ access_token: service.makeKey(), token_type: "Bearer" });
    },
  ];
  expect((await run(place, service, `login --base-url ${service.url}`)).code).toBe(EXIT.failed);
  expect(await readCredentials(fileOf(place))).toEqual(saved);
  expect(service.revoked).toEqual(service.keys);
});

test("Ctrl-C ends the wait, and nothing is saved", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  service.polls = Array.from({ length: 900 }, () => () => refuse("authorization_pending"));
  const child = place.spawn(["login", "--json", "--base-url", service.url]);
  await child.stdout.getReader().read();
  child.kill("SIGINT");
  expect(await child.exited).not.toBe(EXIT.done);
  expect(child.signalCode).toBe("SIGINT");
  expect(await gone(fileOf(place))).toBe(true);
});

test("login warns that a key over plain http can be read, and not so on this machine", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  // The reserved name resolves nowhere, so nothing leaves this machine.
  const far = await run(place, service, "login --base-url http://robots.invalid");
  expect(far).toMatchObject({ code: EXIT.unreachable, stderr: expect.stringContaining("plain http") });
  service.polls = [() => refuse("access_denied")];
  const near = await run(place, service, `login --base-url ${service.url}`);
  expect(near.stderr).not.toContain("plain http");
});

test("an answer that is no key is not taken for one", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const secret = `${newKey(0).key}x`;
  service.keys.push(secret);
  service.polls = [() => Response.json({ access_token: secret, token_type: "Bearer" })];
  expect((await run(place, service, `login --base-url ${service.url}`)).code).toBe(EXIT.failed);
  expect(await gone(fileOf(place))).toBe(true);
});
