import { expect, test } from "bun:test";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NoAnswer } from "../../src/client/http.ts";
import { RunRefusal, retryAfterMs } from "../../src/client/runs/exchange.ts";
import { scan } from "../../src/client/runs/folder.ts";
import { PACE, pauseMs } from "../../src/client/runs/patience.ts";
import { contentDigest, digestOf } from "../../src/client/runs/piece.ts";
import { PushRecord } from "../../src/client/runs/push-record.ts";
import { RunsClient } from "../../src/client/runs.ts";
import { Problem } from "../../src/std/problem.ts";
import { nameProblem, pathProblem } from "../../src/std/run-names.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { bad, good } from "./runs-place.ts";

async function folder(): Promise<AsyncDisposable & { readonly dir: string }> {
  const dir = await mkdtemp(join(tmpdir(), "tendon-runs-"));
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) };
}

test("names of robots and runs are of the contract's form", () => {
  for (const name of ["a", "lab-7", "2026.01.02_x", "9".repeat(128)])
    expect([name, nameProblem(name)]).toEqual([name, undefined]);
  for (const name of ["", ".a", "-a", "a/b", "a b", "ä", "9".repeat(129)])
    expect([name, nameProblem(name)]).not.toEqual([name, undefined]);
});

test("paths of files are of the contract's form", () => {
  const deep = Array(16).fill("d").join("/");
  for (const path of ["a", "a b/ü.jpg", "...", deep, "x".repeat(512)])
    expect([path, pathProblem(path.split("/"))]).toEqual([path, undefined]);
  for (const path of ["", "/a", "a/", "a/./b", "..", "a\\b", "a\u0007", "\ud800", `${deep}/d`, "ü".repeat(257)]) {
    expect([path, pathProblem(path.split("/"))]).toEqual([path, expect.any(String)]);
  }
});

test("a Content-Digest is that of RFC 9530", () => {
  // Appendix D of the RFC: {"hello": "world"} and a line break.
  const hex = new Bun.CryptoHasher("sha256").update('{"hello": "world"}\n').digest("hex");
  expect(contentDigest(hex)).toBe("sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:");
});

test("Retry-After is seconds or a date", () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const cases: [string | null, number | undefined][] = [
    [null, undefined],
    ["7", 7_000],
    ["Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
    ["Thu, 01 Jan 2015 00:00:30 GMT", 0],
    ["soon", undefined],
  ];
  for (const [value, ms] of cases) expect([value, retryAfterMs(value, clock)]).toEqual([value, ms]);
});

test("pauses grow with jitter up to the longest, and are never shorter than Retry-After", () => {
  const broken = new NoAnswer("broken", false);
  for (const [failures, longest] of [
    [1, 500],
    [2, 1_000],
    [20, 30_000],
  ] as const) {
    const pauses = Array.from({ length: 100 }, () => pauseMs(broken, failures, PACE));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(longest / 2);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(longest);
    expect(new Set(pauses).size).toBeGreaterThan(50);
  }
  const busy = new RunRefusal({ message: "", status: 503, code: "storage_busy", exit: 1 }, 45_000);
  expect(pauseMs(busy, 1, PACE)).toBeGreaterThanOrEqual(45_000);
  // A short one is no reason to come back as often as that.
  const soon = new RunRefusal({ message: "", status: 503, code: "storage_unavailable", exit: 1 }, 2_000);
  expect(pauseMs(soon, 20, PACE)).toBeGreaterThanOrEqual(15_000);
});

/** A service that puts an upload together until `done` says otherwise, and a client whose pauses pass at once. */
function finishing(done: (looks: number, clock: FakeClock) => boolean) {
  const clock = new FakeClock();
  const pauses: number[] = [];
  let looks = 0;
  const server = Bun.serve({
    port: 0,
    fetch: () => {
      looks += 1;
      if (done(looks, clock)) return Response.json({ path: "a", size: 1, sha256: "0".repeat(64) });
      const error = { code: "upload_in_progress", type: "invalid_request_error", message: "being finished" };
      return Response.json({ error }, { status: 409, headers: { "retry-after": "1" } });
    },
  });
  const waiting = (_: Problem, ms: number) => {
    pauses.push(ms);
    queueMicrotask(() => clock.advance(ms));
  };
  const client = new RunsClient({ url: server.url.origin, apiKey: "tdn_x" }, { clock, waiting });
  const finish = () => client.finishUpload({ robot: "a", run: "b" }, "a", "up_1");
  return { server, clock, pauses, finish };
}

test("a finish that takes minutes is waited for, with pauses that grow from one second to fifteen", async () => {
  const { server, pauses, finish } = finishing((_, clock) => clock.monotonicMs() > 9 * 60_000);
  await using _ = server;
  expect(good(await finish())).toMatchObject({ path: "a", size: 1 });
  expect(pauses.length).toBeLessThan(100);
  expect(pauses[0]).toBeWithin(1_000, 2_000);
  expect(Math.max(...pauses)).toBeWithin(10_000, 15_001);
});

test("a finish that does not end in ten minutes is given up", async () => {
  const { server, clock, finish } = finishing(() => false);
  await using _ = server;
  expect(bad(await finish()).message).toStartWith("upload_in_progress");
  expect(clock.monotonicMs()).toBeWithin(10 * 60_000, 10 * 60_000 + 15_001);
  expect(clock.armed).toBe(0);
});

test("a service that stays broken is given up after a bounded number of tries", async () => {
  let asked = 0;
  await using server = Bun.serve({
    port: 0,
    fetch: () => {
      asked += 1;
      return Response.json({}, { status: 500 });
    },
  });
  const pace = { firstMs: 1, longestMs: 2, failuresMax: 4 };
  const client = new RunsClient({ url: server.url.origin, apiKey: "tdn_x" }, { pace });
  expect([bad(await client.usage()).exit, asked]).toEqual([1, 4]);
});

test("an answer of another form is a problem, not a crash", async () => {
  await using server = Bun.serve({ port: 0, fetch: () => new Response("<html>") });
  const client = new RunsClient({ url: server.url.origin, apiKey: "tdn_x" });
  for (const outcome of [client.list(), client.usage(), client.manifest({ robot: "a", run: "b" })]) {
    expect(bad(await outcome).message).toContain("is it a tendon service?");
  }
});

test("a connection on which nothing moves is given up", async () => {
  const clock = new FakeClock();
  const arrived = Promise.withResolvers<void>();
  await using server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    fetch: () => {
      arrived.resolve();
      return new Promise<Response>(() => {});
    },
  });
  const pace = { firstMs: 1, longestMs: 1, failuresMax: 1 };
  const usage = new RunsClient({ url: server.url.origin, apiKey: "tdn_x" }, { clock, pace }).usage();
  await arrived.promise;
  clock.advance(120_000);
  expect(bad(await usage)).toMatchObject({ exit: 4, message: expect.stringContaining("nothing moved for 120 s") });
  expect(clock.armed).toBe(0);
});

test("a folder is measured whole: too many files, a pipe, a file that is no run's and an empty folder are refused", async () => {
  await using place = await folder();
  expect(bad(await scan(place.dir)).message).toContain("no file");
  expect(bad(await scan(join(place.dir, "none"))).message).toContain("ENOENT");
  await Bun.write(join(place.dir, "b/a"), "x");
  await Bun.write(join(place.dir, "a"), "xy");
  expect(good(await scan(place.dir)).files.map(({ path, size }) => [path, size])).toEqual([
    ["a", 2],
    ["b/a", 1],
  ]);
  await Bun.write(join(place.dir, "back\\slash"), "x");
  expect(bad(await scan(place.dir)).message).toContain("backslash");
  await rm(join(place.dir, "back\\slash"));
  expect(Bun.spawnSync(["mkfifo", join(place.dir, "pipe")]).exitCode).toBe(0);
  expect(bad(await scan(place.dir)).message).toContain("'pipe' is not a regular file");
  await rm(join(place.dir, "pipe"));
  await Promise.all(Array.from({ length: 1_998 }, (_, index) => Bun.write(join(place.dir, `f${index}`), "")));
  expect(good(await scan(place.dir)).files).toHaveLength(2_000);
  await Bun.write(join(place.dir, "one-more"), "");
  expect(bad(await scan(place.dir)).message).toContain("2001 files");
});

test("more bytes than a run holds are refused before the first is read", async () => {
  await using place = await folder();
  const sparse = join(place.dir, "sparse");
  expect(Bun.spawnSync(["truncate", "-s", String(2 ** 31), sparse]).exitCode).toBe(0);
  expect(good(await scan(place.dir)).files).toHaveLength(1);
  await Bun.write(join(place.dir, "one"), "x");
  expect(bad(await scan(place.dir)).message).toContain("at most 2000 files and 2147483648 bytes");
});

test("a file that became shorter is said to have", async () => {
  await using place = await folder();
  const file = join(place.dir, "a");
  await Bun.write(file, "short");
  const outcome = await digestOf({ file, start: 0, end: 100 });
  expect(outcome).toBeInstanceOf(Problem);
  expect(bad(outcome).message).toContain("became shorter");
});

test("the record of a push is private, survives, and is of one service, run and folder", async () => {
  await using place = await folder();
  const recordsDir = join(place.dir, "records");
  const of = { url: "http://a", run: { robot: "r", run: "1" }, folder: place.dir };
  const file = { path: "a", file: "", size: 3, mtimeMs: 5.25 };
  const record = await PushRecord.open(recordsDir, of);
  record.stored(file, "abc");
  record.begun({ ...file, path: "b" }, "def", "up_1");
  await record.settled();
  const [name = ""] = await readdir(recordsDir);
  expect((await stat(join(recordsDir, name))).mode & 0o777).toBe(0o600);
  const again = await PushRecord.open(recordsDir, of);
  expect([again.digest(file), again.isStored(file, "abc"), again.uploadOf("b")]).toEqual(["abc", true, "up_1"]);
  expect([again.digest({ ...file, mtimeMs: 6 }), again.isStored(file, "abd")]).toEqual([undefined, false]);
  for (const other of [
    { ...of, url: "http://b" },
    { ...of, run: { robot: "r", run: "2" } },
    { ...of, folder: tmpdir() },
  ]) {
    expect((await PushRecord.open(recordsDir, other)).paths).toEqual([]);
  }
  await Bun.write(join(recordsDir, name), "{ torn");
  expect((await PushRecord.open(recordsDir, of)).paths).toEqual([]);
  await again.remove();
  expect(await readdir(recordsDir)).toEqual([]);
});
