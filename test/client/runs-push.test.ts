/** Pushes to a service over a bad link. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rm, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { RunsClient } from "../../src/client/runs.ts";
import { present } from "../../src/std/assert.ts";
import { EXIT } from "../../src/std/problem.ts";
import { BadLink } from "./bad-link.ts";
import { bad, good, PACE, type RunService, RunsPlace, runService } from "./runs-place.ts";

const MIB = 2 ** 20;
/** Five parts of 16 MiB, the last one short. */
const LARGE = 64 * MIB + 12_345;

let service: RunService;
beforeAll(async () => {
  service = await runService();
});
afterAll(async () => await service[Symbol.asyncDispose]());

/** What the service has is what the folder has. */
async function expectWhole(place: RunsPlace): Promise<void> {
  good(await place.pull("check"));
  const there = await place.contents("check");
  const here = await place.contents("episode");
  expect([...there.keys()].sort()).toEqual([...here.keys()].filter((path) => !/(^|\/)\./.test(path)).sort());
  for (const [path, bytes] of there) expect([path, bytes.equals(present(here.get(path), path))]).toEqual([path, true]);
  await rm(join(place.dir, "check"), { recursive: true });
}

/** A push that is cut before the run is completed: the service has every file. */
async function pushAlmost(place: RunsPlace): Promise<void> {
  place.link.next("POST ", { kind: "answer", status: 400, code: "invalid_body" });
  bad(await place.push());
}

test("stores every file and completes the run; hidden files are left out, and it is said", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("episode.jsonl", '{"type":"episode"}\n');
  await place.write("frames/top/00 #%ü.jpg", 300_000);
  await place.write("empty", "");
  await place.write(".DS_Store", "x");
  await place.write("frames/.cache/a", "x");
  const pushed = good(await place.push({ metadata: { task: "fold" } }));
  expect(pushed).toMatchObject({ state: "completed", files: 3, size: 300_019, sent: { files: 3, bytes: 300_019 } });
  expect(pushed.manifest?.metadata).toEqual({ task: "fold" });
  expect(place.heard.skipped.sort()).toEqual([".DS_Store", "frames/.cache"]);
  expect([place.heard.bytes, place.heard.files]).toEqual([300_019, 3]);
  await expectWhole(place);
});

test("a run that could not be completed is refused before the first request", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "1");
  // A text of JSON, its quotes and braces included, of the longest length and one more.
  const metadata = (bytes: number) => ({ a: "x".repeat(bytes - 8) });
  expect(bad(await place.push({ metadata: metadata(65_537) })).message).toContain("metadata has 65537 bytes");
  const folder = ["x", "y", "z"].map((letter) => letter.repeat(155)).join("/");
  for (let file = 1; file < 2_000; file += 1) await place.write(`${folder}/${file}`, "");
  expect(bad(await place.push()).message).toContain("the list of its 2000 files has 11");
  expect(place.link.take("")).toEqual([]);
  await rm(join(place.folder, "x".repeat(155)), { recursive: true });
  expect(good(await place.push({ metadata: metadata(65_536) })).state).toBe("completed");
});

test("a large file goes in parts, each with its digest and length", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("video.mp4", LARGE);
  good(await place.push());
  const parts = place.link.heads.filter((head) => head.startsWith("PUT "));
  expect(parts).toHaveLength(5);
  for (const head of parts) expect(head).toMatch(/content-digest: sha-256=:[\w+/=]{44}:/i);
  for (const head of parts) expect(head).toMatch(/content-length: \d+/i);
  await expectWhole(place);
});

test("a run that is complete and the same is already there; one that differs is told apart and left alone", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  await place.write("b", "two");
  await place.write("c", "three");
  good(await place.push({ metadata: { take: 1 } }));
  place.link.take("");
  expect(good(await place.push())).toMatchObject({ state: "already_there", sent: { files: 0, bytes: 0 } });
  await place.write("a", "One");
  await rm(join(place.folder, "b"));
  await place.write("d", "four");
  const { message, exit } = bad(await place.push({ metadata: { take: 2 } }));
  expect(exit).toBe(EXIT.failed);
  expect(message).toContain("they differ in 'a', 'd', 'b', the metadata.");
  expect(place.link.take("PUT ")).toEqual([]);
});

test("a connection that is cut is made again, and nothing is counted twice", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("video.mp4", LARGE);
  await place.write("small", 500_000);
  place.link.next("PUT /v1/robot/runs/lab-7", { kind: "cut up", atByte: 200_000 });
  place.link.next("POST /v1/robot/runs/lab-7", { kind: "cut down", atByte: 0 });
  place.link.next("PUT /v1/robot/runs/lab-7", { kind: "cut down", atByte: 0 });
  good(await place.push());
  expect(place.heard.waits.length).toBeGreaterThanOrEqual(3);
  expect(place.heard.bytes).toBe(LARGE + 500_000);
  await expectWhole(place);
});

test("a flipped bit is caught by the service, and the bytes are sent again", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("video.mp4", LARGE);
  await place.write("small", 500_000);
  place.link.next("PUT /v1/robot/runs/lab-7", { kind: "flip up", atByte: 100_000 });
  place.link.next("PUT /v1/robot/runs/lab-7", { kind: "flip up", atByte: 100_000 });
  good(await place.push());
  expect(place.heard.waits.map(({ why }) => why.split(":")[0])).toEqual(["checksum_mismatch", "checksum_mismatch"]);
  await expectWhole(place);
});

test("Retry-After is honoured", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  const busy = { kind: "answer", status: 503, code: "storage_busy", headers: "retry-after: 1" } as const;
  place.link.next("PUT ", busy);
  place.link.next("POST ", { ...busy, status: 429, code: "rate_limited", headers: "retry-after: 0" });
  good(await place.push());
  expect(place.heard.waits.map(({ ms }) => ms >= 1_000)).toEqual([true, false]);
});

test("another refusal is not repeated, and ends the push with its code", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  for (const [status, code] of [
    [413, "storage_quota_exceeded"],
    [422, "invalid_request"],
    [409, "run_completed"],
    [429, "spend_limit_exceeded"],
  ] as const) {
    place.link.next("PUT ", { kind: "answer", status, code });
    const problem = bad(await place.push());
    expect([problem.message, problem.exit]).toEqual([`${code}: on purpose`, EXIT.failed]);
    expect(place.link.take("PUT ")).toHaveLength(1);
  }
  place.link.next("GET ", { kind: "answer", status: 401, code: "invalid_api_key" });
  expect(bad(await place.push()).exit).toBe(EXIT.notSignedIn);
});

test("a push that lost its link goes on with what is missing", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("small", 500_000);
  await cutVideo(place);
  expect(good(await place.push({ parallel: 1 })).state).toBe("completed");
  const parts = place.link.take("PUT ").map((line) => /(files\/.*|part=\d+)$/.exec(line)?.[1]);
  expect(parts).toEqual(["part=3", "part=4", "part=5"]);
  expect(place.heard.bytes).toBe(LARGE + 500_000);
  await expectWhole(place);
});

test("without its record a push finds the open upload of the file", async () => {
  await using place = await RunsPlace.at(service);
  await cutVideo(place);
  good(await place.push({ parallel: 1, recordsDir: join(place.dir, "other") }));
  expect(place.link.take("PUT ")).toHaveLength(3);
  await expectWhole(place);
});

test("a file whose finish was done and never heard of is not sent again", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("video.mp4", LARGE);
  const finish = `POST /v1/robot/runs/lab-7/${place.run.run}/uploads/video.mp4?upload_id=`;
  place.link.next(finish, { kind: "cut down", atByte: 0 });
  let finishes = 0;
  place.link.onRequest = (line) => {
    if (line.startsWith(finish)) finishes += 1;
    if (finishes === 2) place.link.cut();
  };
  expect(bad(await place.push()).exit).toBe(EXIT.unreachable);
  place.link.onRequest = () => {};
  place.link.mend();
  place.link.take("");
  good(await place.push());
  expect(place.link.take("PUT ")).toEqual([]);
  await expectWhole(place);
});

test("a run that another upload keeps open is not completed, and what to do is said", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  good(await place.client.startUpload(place.run, "b", { size: LARGE, sha256: "0".repeat(64) }));
  const { message, exit } = bad(await place.push());
  expect([message.split(":")[0], exit]).toEqual(["upload_in_progress", EXIT.failed]);
  expect(message).toContain(`tendon runs delete lab-7 ${place.run.run}`);
});

test("a run with a file that this push knows nothing of is not completed, and what to do is said", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  await place.write("b", "two");
  await pushAlmost(place);
  await rm(join(place.folder, "b"));
  const { message } = bad(await place.push({ recordsDir: join(place.dir, "other") }));
  expect(message).toStartWith("run_incomplete");
  expect(message).toContain(`tendon runs delete lab-7 ${place.run.run}`);
});

for (const [records, what] of [
  ["records", "with its record"],
  ["other", "without it"],
] as const) {
  test(`parts of what the file was before are not mixed with those of what it is, ${what}`, async () => {
    await using place = await RunsPlace.at(service);
    await cutVideo(place);
    await place.write("video.mp4", LARGE);
    good(await place.push({ recordsDir: join(place.dir, records) }));
    expect(place.link.take("PUT ")).toHaveLength(5);
    expect(place.heard.bytes).toBe(LARGE);
    await expectWhole(place);
  });
}

test("a file that grew past an upload of it, or shrank to one request, replaces it", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("video.mp4", LARGE);
  await place.write("log.bin", LARGE);
  cutAfterParts(place, 7);
  bad(await place.push({ parallel: 2 }));
  place.link.mend();
  await place.write("video.mp4", LARGE + 1);
  await place.write("log.bin", 77);
  good(await place.push({ recordsDir: join(place.dir, "other") }));
  await expectWhole(place);
});

test("an upload that is still being put together is waited for before its path is taken", async () => {
  await using place = await RunsPlace.at(service);
  await cutVideo(place);
  await place.write("video.mp4", LARGE + 1);
  const joining = { kind: "answer", status: 409, code: "upload_in_progress", headers: "retry-after: 0" } as const;
  place.link.next("DELETE ", joining);
  place.link.next("DELETE ", joining);
  good(await place.push({ recordsDir: join(place.dir, "other") }));
  await expectWhole(place);
});

test("what was stored of a file that is gone now is taken away before the run is completed", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  await place.write("b", "two");
  await pushAlmost(place);
  await rm(join(place.folder, "b"));
  await place.write("c", "three");
  place.link.take("");
  expect(good(await place.push()).state).toBe("completed");
  expect(place.link.take("PUT ")).toHaveLength(1);
  await expectWhole(place);
});

test("a record of a run that was deleted meanwhile is worth nothing, and everything is sent", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  await pushAlmost(place);
  expect(await place.client.remove(place.run)).toBeUndefined();
  expect(good(await place.push())).toMatchObject({ state: "completed", sent: { files: 1, bytes: 3 } });
  await expectWhole(place);
});

test("a delete whose answer was lost is done, one of a run that never was is refused", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  good(await place.push());
  // A fresh connection: on one that was used before, Bun itself repeats the request, and the client hears of no loss.
  await using link = await BadLink.to(service.url);
  const client = new RunsClient({ url: link.url, apiKey: service.key }, { pace: PACE });
  link.next("DELETE ", { kind: "cut down", atByte: 0 });
  expect(await client.remove(place.run)).toBeUndefined();
  expect(link.take("DELETE ")).toHaveLength(2);
  link.next("DELETE ", { kind: "answer", status: 503, code: "storage_busy" });
  expect(bad(await client.remove(place.run)).message).toStartWith("run_not_found");
});

test("a file that was touched is read again, and not sent again", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  await pushAlmost(place);
  await utimes(join(place.folder, "a"), 1_000, 1_000);
  place.link.take("");
  good(await place.push());
  expect(place.link.take("PUT ")).toEqual([]);
});

test("a signal stops it, and the next push sends the rest", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("video.mp4", LARGE);
  const left = new AbortController();
  place.heard.onMoved = (bytes) => {
    if (bytes > 40 * MIB) left.abort();
  };
  bad(await place.push({ parallel: 1 }, left.signal));
  place.link.take("");
  good(await place.push());
  expect(place.link.take("PUT ").length).toBeLessThan(5);
  await expectWhole(place);
});

test("a folder with a symbolic link is refused before anything is sent", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  await symlink("a", join(place.folder, "link"));
  expect(bad(await place.push()).message).toContain("'link' is a symbolic link");
  expect(place.link.heads).toEqual([]);
});

test("an address where nobody listens is exit 4 at once", async () => {
  await using place = await RunsPlace.at(service);
  await place.write("a", "one");
  await place.link[Symbol.asyncDispose]();
  expect(bad(await place.push()).exit).toBe(EXIT.unreachable);
  expect(place.heard.waits).toEqual([]);
});

/** A push of a large file whose link breaks after two parts, and works again from then on. */
async function cutVideo(place: RunsPlace): Promise<void> {
  await place.write("video.mp4", LARGE);
  cutAfterParts(place, 3);
  expect(bad(await place.push({ parallel: 1 })).exit).toBe(EXIT.unreachable);
  place.link.mend();
  place.link.take("");
}

/** The link is gone when the part of this number, counted over all files, begins. */
function cutAfterParts(place: RunsPlace, number: number): void {
  let seen = 0;
  place.link.onRequest = (line) => {
    if (!line.includes("&part=")) return;
    seen += 1;
    if (seen === number) place.link.cut();
  };
}
