import { expect, test } from "bun:test";
import type { EpisodeObservation } from "../../../src/client/episode-log/format.ts";
import { openEpisode } from "../../../src/client/episode-log/read.ts";
import { Problem } from "../../../src/std/problem.ts";
import { pathProblem } from "../../../src/std/run-names.ts";
import { Folder, head, observation } from "./sample-run.ts";

/** All that the log in a folder says, or the problem that ends it. */
async function all(folder: string): Promise<EpisodeObservation[] | Problem> {
  const log = await openEpisode(folder);
  if (log instanceof Problem) return log;
  const read: EpisodeObservation[] = [];
  for await (const one of log.observations) {
    if (one instanceof Problem) return one;
    read.push(one);
  }
  return read;
}

/** The problem of a log of these lines. */
async function faultOf(...lines: readonly unknown[]): Promise<string> {
  await using folder = await Folder.make();
  const text = lines.map((line) => (typeof line === "string" ? line : `${JSON.stringify(line)}\n`)).join("");
  await Bun.write(folder.at("episode.jsonl"), text);
  const read = await all(folder.path);
  if (!(read instanceof Problem)) throw new Error("it could be read");
  return read.message.replace(folder.at("episode.jsonl"), "LOG");
}

const framed = (step: number, changes: Partial<EpisodeObservation> = {}) =>
  observation(step, { frames: { top: ["frames/top/000000.jpg"] }, ...changes });

test("a log that is not as it must be is refused with the line's number and what is wrong", async () => {
  expect(await faultOf("")).toContain("is empty");
  expect(await faultOf("nonsense\n")).toBe("'LOG' line 1: it is not a JSON object");
  expect(await faultOf(framed(0))).toMatch(/^'LOG' line 1: \//);
  expect(await faultOf({ ...head(), version: 2 })).toMatch(/line 1: \/version/);
  expect(await faultOf(head({ cameras: [{ name: "a/b" }] }))).toMatch(/line 1: \/cameras\/0\/name/);
  expect(await faultOf(head({ cameras: [{ name: "top" }, { name: "top" }] }))).toContain("'top' stands there twice");
  expect(await faultOf(head({ cameras: [{ name: "top", video: "../x.mp4" }] }))).toContain("not a path inside the run");
  expect(await faultOf(head(), framed(0), "\n")).toBe("'LOG' line 3: it is not a JSON object");
  expect(await faultOf(head(), { ...framed(0), t: "0" })).toMatch(/line 2: \/t: /);
  expect(await faultOf(head(), framed(1), framed(0))).toContain("line 3: /t: 0 is before 0.5");
  expect(await faultOf(head(), framed(0, { state: [1] }))).toBe("'LOG' line 2: /state: 1 values, the head names 2");
  const cut = { id: null, start: 0, actions: [[1, 2], [1]] };
  expect(await faultOf(head(), framed(0, { chunk: cut }))).toContain("/chunk/actions/1: 1 values, the head names 2");
  expect(await faultOf(head(), observation(0))).toContain("/frames: none of camera 'top'");
  expect(await faultOf(head(), framed(0, { frames: { top: ["/etc/passwd"] } }))).toContain("not a path inside the run");
  expect(await faultOf(head(), framed(0), JSON.stringify(framed(1)))).toMatch(/line 3: it is cut off/);
});

test("a log that is not there, or no UTF-8, is a problem", async () => {
  await using folder = await Folder.make();
  expect(await openEpisode(folder.path)).toMatchObject({ message: expect.stringContaining("cannot read") });
  await Bun.write(folder.at("episode.jsonl"), new Uint8Array([0xff, 0xfe, 10]));
  expect(await openEpisode(folder.path)).toMatchObject({ message: expect.stringContaining("UTF-8") });
});

test("a line without an end is not read into memory whole", async () => {
  expect(await faultOf(`${JSON.stringify(head())}\n`, " ".repeat(17 * 1024 * 1024))).toContain(
    "line 2: it is longer than",
  );
});

test("a robot may keep its own fields in its log", async () => {
  await using folder = await Folder.make();
  const lines = [
    { ...head(), operator: "A" },
    { ...framed(0), note: "slipped" },
  ];
  await Bun.write(folder.at("episode.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  expect(await all(folder.path)).toMatchObject([{ t: 0 }]);
});

test("paths of a run stay inside it", () => {
  for (const good of ["a", "videos/top.mp4", "a/b/c/ä.jpg", "a/..b"])
    expect([good, pathProblem(good.split("/"))]).toEqual([good, undefined]);
  const bad = [
    "",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/../b",
    "a/./b",
    "a\\b",
    "a\nb",
    "x".repeat(513),
    `${"a/".repeat(16)}a`,
  ];
  for (const path of bad) expect([path, typeof pathProblem(path.split("/"))]).toEqual([path, "string"]);
});
