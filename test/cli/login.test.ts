/** Device login as the client does it, and the commands around it, as child processes with a HOME of their own. */
import { expect, test } from "bun:test";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { readCredentials, writeCredentials } from "../../src/account/credentials.ts";
import { keyPublicId, makeKey } from "../../src/account/key.ts";
import { awaitKey, beginLogin, deviceName, type PendingLogin } from "../../src/client/oauth.ts";
import { EXIT, Problem } from "../../src/error/problem.ts";
import type { Clock } from "../../src/std/clock.ts";
import { FakeService, refuse } from "../client/fake-service.ts";
import { type Ended, Place } from "../program/program.ts";

const fileOf = (place: Place) => join(place.home, ".config/tendon/credentials.json");
const prefixOf = (key: string) => `tdn_${keyPublicId(key)}`;
const gone = async (path: string) => (await readCredentials(path)) === undefined;

/** Runs a command; whatever it does, no key is in what it prints. */
async function run(place: Place, service: FakeService, args: string, env: Record<string, string> = {}): Promise<Ended> {
  const ended = await place.run(args.split(" "), env);
  for (const key of service.keys) expect(ended.stdout + ended.stderr).not.toContain(key.slice(16));
  return ended;
}

/** A place that is signed in. */
async function signedIn(place: Place, service: FakeService): Promise<string> {
  const key = service.makeKey();
  await writeCredentials(fileOf(place), { base_url: service.url, api_key: key });
  return key;
}

/** A clock whose pauses take no time; `onPause` is told how many there have been. */
class HurriedClock implements Clock {
  readonly pausesMs: number[] = [];
  private nowMs = 0;

  constructor(private readonly onPause: (count: number) => void | Promise<void> = () => {}) {}

  unixMs(): number {
    return this.nowMs;
  }
  monotonicMs(): number {
    return this.nowMs;
  }
  after(ms: number, due: () => void): () => void {
    this.nowMs += ms;
    this.pausesMs.push(ms);
    void Promise.resolve(this.onPause(this.pausesMs.length)).then(due);
    return () => {};
  }
  every(): () => void {
    throw new Error("nothing repeats here");
  }
}

async function begun(service: FakeService): Promise<PendingLogin> {
  const pending = await beginLogin(service.url, "test");
  if (pending instanceof Problem) throw new Error(pending.message);
  return pending;
}

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
    const saved = { base_url: home, api_key: makeKey() };
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
  service.polls = [() => refuse("invalid_grant")];
  expect(await awaitKey(service.url, await begun(service), new HurriedClock())).toMatchObject({ exit: EXIT.failed });
  expect(await gone(fileOf(place))).toBe(true);
});

test("slow_down lengthens the interval by 5 s, for good", async () => {
  await using service = new FakeService();
  service.interval = 2;
  const [slower, pending] = [() => refuse("slow_down"), () => refuse("authorization_pending")];
  service.polls = [pending, slower, pending, slower];
  const clock = new HurriedClock();
  expect(await awaitKey(service.url, await begun(service), clock)).toBe(service.keys[0] ?? "");
  expect(clock.pausesMs).toEqual([2_000, 2_000, 7_000, 7_000, 12_000]);
});

test("the service's interval is taken within 1 to 60 s, and is 5 s if it names none", async () => {
  await using service = new FakeService();
  const asked = [undefined, 0, -5, 7, 100_000];
  const taken: number[] = [];
  for (service.interval of asked) taken.push((await begun(service)).intervalSeconds);
  expect(taken).toEqual([5, 1, 1, 7, 60]);
});

test("a service that restarts or is overloaded does not end the login", async () => {
  await using service = new FakeService();
  const overloaded = () => new Response("", { status: 503 });
  service.polls = [() => refuse("authorization_pending"), overloaded, () => refuse("authorization_pending")];
  const clock = new HurriedClock(async (count) => {
    if (count === 2) await service.stop();
    if (count === 8) service.restart();
  });
  expect(await awaitKey(service.url, await begun(service), clock)).toBe(service.keys[0] ?? "");
  // One answer, six refused connections, one 503, one answer, the key.
  expect(clock.pausesMs).toEqual([1, 1, 2, 4, 8, 16, 30, 30, 30, 1].map((seconds) => seconds * 1000));
});

test("the wait ends when the code has expired, also if the service stays away", async () => {
  await using service = new FakeService();
  service.expiresIn = 20;
  const pending = await begun(service);
  service.polls = Array.from({ length: 30 }, () => () => refuse("authorization_pending"));
  const clock = new HurriedClock();
  expect(await awaitKey(service.url, pending, clock)).toMatchObject({
    exit: EXIT.failed,
    message: expect.stringContaining("expired"),
  });
  expect([clock.monotonicMs(), service.polled]).toEqual([20_000, 20]);
  await service.stop();
  const away = new HurriedClock();
  expect(await awaitKey(service.url, pending, away)).toMatchObject({ exit: EXIT.unreachable });
  expect(away.monotonicMs()).toBe(20_000);
});

test("an answer that is no login, or no key, is not taken for one", async () => {
  await using place = await Place.make();
  await using service = new FakeService();
  const secret = `${makeKey()}x`;
  service.keys.push(secret);
  service.polls = [() => Response.json({ access_token: secret, token_type: "Bearer" })];
  expect((await run(place, service, `login --base-url ${service.url}`)).code).toBe(EXIT.failed);
  expect(await gone(fileOf(place))).toBe(true);
  await using other = Bun.serve({ port: 0, fetch: () => Response.json({}) });
  expect(await beginLogin(`http://127.0.0.1:${other.port}`, "test")).toMatchObject({ exit: EXIT.failed });
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
  const saved = { base_url: "http://127.0.0.1:1", api_key: makeKey() };
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
  // Where it was made, a key that is dead already is only removed.
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

test("a machine's name is printable and at most 64 characters long", async () => {
  expect(deviceName("robot\u0007cell\n")).toBe("robot cell");
  expect(deviceName("é".repeat(80))).toBe("é".repeat(64));
  expect(deviceName(" ")).not.toBe("");
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
