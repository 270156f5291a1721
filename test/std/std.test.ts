import { expect, test } from "bun:test";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/std/clock.ts";
import { readText, writePrivate } from "../../src/std/file.ts";
import { BASE62, base62, isAnonId, makeId, randomBase62 } from "../../src/std/ids.ts";
import { makeLog } from "../../src/std/log.ts";
import { Metrics } from "../../src/std/metrics.ts";
import { nearest } from "../../src/std/nearest.ts";
import { temporaryFolder } from "../store/temporary.ts";
import { FakeClock } from "./fake-clock.ts";

test("base62 has a fixed width and sorts as its numbers do", () => {
  expect([base62(0, 3), base62(61, 2), base62(62, 2), base62(2 ** 32 - 1, 6)]).toEqual(["000", "0z", "10", "4gfFC3"]);
  expect(() => base62(62 ** 2, 2)).toThrow("fits");
});

test("random base62 uses every character", () => {
  const text = randomBase62(10_000);
  expect(text.length).toBe(10_000);
  expect([...new Set(text)].sort().join("")).toBe(BASE62);
});

test("ids have a prefix and 24 base62 characters and are time-ordered", () => {
  const clock = new FakeClock();
  const ids = Array.from({ length: 50 }, () => {
    clock.advance(1);
    return makeId("gen_", clock);
  });
  for (const id of ids) expect(id).toMatch(/^gen_[0-9A-Za-z]{24}$/);
  expect(ids.toSorted()).toEqual(ids);
  expect([isAnonId(makeId("anon-", clock)), isAnonId("anon-mine"), isAnonId(makeId("req_", clock))]).toEqual([
    true,
    false,
    false,
  ]);
});

test("a log line is one line, as text or as JSON", () => {
  const lines: string[] = [];
  const clock = new FakeClock(0);
  const write = (line: string) => lines.push(line);
  makeLog({ clock, json: false, write }).info("model loaded", { model: "a/b", note: "two words", stack: "x\n  at y" });
  makeLog({ clock, json: true, write }).error("fault", { n: 1 });
  expect(lines).toEqual([
    '1970-01-01T00:00:00.000Z info model loaded model=a/b note="two words" stack="x\\n  at y"',
    '{"time":"1970-01-01T00:00:00.000Z","level":"error","event":"fault","n":1}',
  ]);
});

test("metrics are Prometheus text", async () => {
  const metrics = new Metrics();
  const counter = metrics.counter("n_total", "Help.", ["route", "status"]);
  counter.inc({ route: "chat", status: "200" });
  counter.inc({ route: "chat", status: "200" });
  counter.inc({ route: 'a"b\\\n', status: "404" });
  expect(await metrics.text()).toBe(
    '# HELP n_total Help.\n# TYPE n_total counter\nn_total{route="chat",status="200"} 2\nn_total{route="a\\"b\\\\\\n",status="404"} 1\n',
  );
});

test("durations fill cumulative buckets; a series is there before its first value", async () => {
  const metrics = new Metrics();
  const durations = metrics.durations("d_ms", "Help.", { bucketsMs: [1, 3], label: "route", values: ["a", "b"] });
  for (const ms of [0.5, 1, 2, 5]) durations("a").add(ms);
  const text = await metrics.text();
  expect(text).toContain(
    'd_ms_bucket{le="1",route="a"} 2\nd_ms_bucket{le="3",route="a"} 3\nd_ms_bucket{le="+Inf",route="a"} 4\nd_ms_sum{route="a"} 8.5\nd_ms_count{route="a"} 4\n',
  );
  expect(text).toContain('d_ms_count{route="b"} 0\n');
});

test("the nearest word", () => {
  const known = ["serve", "sample", "models"];
  expect([nearest("srve", known), nearest("model", known), nearest("smaple", known)]).toEqual([
    "serve",
    "models",
    "sample",
  ]);
});

test("a private file is written whole with mode 0600; a failure leaves nothing behind", async () => {
  await using dir = await temporaryFolder();
  const path = join(dir.path, "new", "file");
  await writeFile(join(dir.path, "old"), "old");
  await writePrivate(path, "text");
  expect([await readText(path), (await stat(path)).mode & 0o777]).toEqual(["text", 0o600]);
  expect((await stat(join(dir.path, "new"))).mode & 0o777).toBe(0o700);
  expect(await readText(join(dir.path, "none"))).toBeUndefined();
  await mkdir(join(dir.path, "taken", "inside"), { recursive: true });
  await expect(writePrivate(join(dir.path, "taken"), "text")).rejects.toThrow();
  expect((await readdir(dir.path)).sort()).toEqual(["new", "old", "taken"]);
});

test("the system clock goes on, and its timers fire and are cancelled", async () => {
  const before = systemClock.monotonicMs();
  const fired = Promise.withResolvers<void>();
  systemClock.after(0, () => fired.reject(new Error("cancelled timers do not fire")))();
  const stop = systemClock.every(1, () => fired.resolve());
  await new Promise<void>((resolve) => {
    systemClock.after(1, resolve);
  });
  await fired.promise;
  stop();
  expect(systemClock.monotonicMs()).toBeGreaterThan(before);
  expect(systemClock.unixMs()).toBeGreaterThan(1_700_000_000_000);
});
