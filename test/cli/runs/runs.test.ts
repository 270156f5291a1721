/** `tendon runs …` as the person at a terminal has it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdir, symlink } from "node:fs/promises";
import { BadLink } from "../../client/bad-link.ts";
import { type Ended, isClear, Place } from "../../program/program.ts";
import type { Person } from "../../runs/person.ts";
import { RunsStage } from "../../runs/stage.ts";

let stage: RunsStage;
let service: Person;
let place: Place;

beforeAll(async () => {
  stage = await RunsStage.start();
  service = await stage.person();
  place = await Place.make();
  await Bun.write(place.path("fold-1/episode.jsonl"), '{"type":"episode"}\n');
  await Bun.write(place.path("fold-1/frames/0.jpg"), randomBytes(100_000));
  await Bun.write(place.path("fold-1/.DS_Store"), "x");
  await Bun.write(place.path("about.json"), '{"task":"fold"}');
});

afterAll(async () => {
  await place[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});

const signedIn = (url = service.url) => ({ TENDON_API_KEY: service.key, TENDON_BASE_URL: url });
const run = (words: string, env: Record<string, string> = signedIn()): Promise<Ended> =>
  place.run(["runs", ...words.split(" ")], env);

describe("tendon runs", () => {
  test("push, list, show, pull, usage and delete are one round", async () => {
    expect(await run("push fold-1 --robot lab-7 --metadata about.json")).toEqual({
      code: 0,
      stdout: "lab-7/fold-1: 2 files, 100 kB, complete (2 files sent now, 100 kB)\n",
      stderr: "skipped, as hidden files are: .DS_Store\n",
    });
    expect((await run("push fold-1/ --robot lab-7")).stdout).toBe("lab-7/fold-1: 2 files, 100 kB, already there\n");
    expect((await run("list")).stdout).toMatch(
      /^robot {2}run {5}completed {13}files {4}size\nlab-7 {2}fold-1 {2}\d{4}-\d\d-\d\dT[\d:]{8}Z {6}2 {2}100 kB\n$/,
    );
    const shown = await run("show lab-7 fold-1");
    expect(shown.stdout).toMatch(/^lab-7\/fold-1: 2 files, 100 kB, completed \S+Z\n\npath/);
    expect(shown.stdout).toEndWith('\n\nmetadata {"task":"fold"}\n');
    expect((await run("pull lab-7 fold-1 copy")).stdout).toBe(
      "lab-7/fold-1: 2 files, 100 kB, in copy (2 files fetched now, 100 kB)\n",
    );
    expect(Bun.spawnSync(["diff", "-r", "-x", ".*", place.path("fold-1"), place.path("copy")]).exitCode).toBe(0);
    expect((await run("usage")).stdout).toMatch(/^free {10,}\d.* of \d.*$/m);
    expect(await run("delete lab-7 fold-1 --yes")).toEqual({ code: 0, stdout: "deleted lab-7/fold-1\n", stderr: "" });
    expect((await run("list")).stdout).toStartWith("there are no completed runs");
  });

  test("--json prints one object and nothing else", async () => {
    const json = async (words: string) => {
      const { code, stdout, stderr } = await run(`${words} --json`);
      expect([words, code, stderr, stdout.split("\n").length]).toEqual([words, 0, "", 2]);
      return JSON.parse(stdout);
    };
    const words = "push fold-1 --robot lab-7 --run json-1";
    const name = { robot: "lab-7", run: "json-1" };
    expect(await json("list --robot lab-7")).toMatchObject({ object: "list", data: [], has_more: false });
    expect(await json(words)).toMatchObject({
      ...{ ...name, state: "completed", sent: { files: 2, bytes: 100_019 }, skipped: [".DS_Store"] },
      manifest: { object: "robot.run", size: 100_019 },
    });
    expect(await json("list --robot lab-7")).toMatchObject({ data: [{ ...name, files: 2, size: 100_019 }] });
    expect(await json("list --robot lab-8")).toMatchObject({ data: [] });
    expect(await json("show lab-7 json-1")).toMatchObject({ object: "robot.run", files: [{}, {}] });
    expect(await json("pull lab-7 json-1 copy-2")).toMatchObject({ folder: "copy-2", fetched: { files: 2 } });
    expect(await json("pull lab-7 json-1 copy-2")).toMatchObject({ fetched: { files: 0 }, there: { files: 2 } });
    expect(await json("usage")).toMatchObject({ object: "robot.usage", quota_bytes: expect.any(Number) });
    expect(await json("delete lab-7 json-1 --yes")).toEqual({ ...name, deleted: true });
  });

  test("list is bounded, says that there is more, and --all has every page", async () => {
    for (let index = 0; index < 25; index += 1) await service.completed(`many/r${index}`, { a: "x" });
    const some = await run("list --robot many");
    expect([some.stdout.split("\n").length, some.stdout]).toEqual([
      23,
      expect.stringContaining("there are more: --all"),
    ]);
    expect(JSON.parse((await run("list --robot many --json")).stdout)).toMatchObject({
      has_more: true,
      next: expect.any(String),
    });
    const all = JSON.parse((await run("list --robot many --all --json")).stdout);
    expect([all.data.length, all.has_more, all.next]).toEqual([25, false, null]);
  });

  test("list --all ends where a page names itself as the next", async () => {
    const page = { object: "list", data: [], has_more: true, next: "again" };
    using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json(page) });
    const { code, stderr } = await run("list --all", signedIn(`http://127.0.0.1:${server.port}`));
    expect([code, stderr]).toEqual([1, expect.stringContaining("has no end")]);
  });

  test("a failure is one clear line with its exit code", async () => {
    await mkdir(place.path("empty"));
    await mkdir(place.path("a b"));
    await mkdir(place.path("linked"));
    await symlink("x", place.path("linked/y"));
    await Bun.write(place.path("list.json"), "[1]");
    const cases: [words: string[], env: Record<string, string>, code: number, says: string][] = [
      [["push"], {}, 2, "--robot NAME is missing"],
      [["push", "--robot", "a"], {}, 2, "expected one DIR"],
      [["push", "x", "y", "--robot", "a"], {}, 2, "expected one DIR"],
      [["push", "fold-1"], {}, 2, "--robot NAME is missing"],
      [["push", "fold-1", "--robot", "a/b"], {}, 2, "'a/b' is no name of a robot"],
      [["push", "a b", "--robot", "a"], {}, 2, "'a b' is no name of a run"],
      [["push", "fold-1", "--robot", "a", "--metadata", "none.json"], {}, 2, "--metadata"],
      [["push", "fold-1", "--robot", "a", "--metadata", "list.json"], {}, 2, "JSON object"],
      [["push", "none", "--robot", "a"], {}, 1, "ENOENT"],
      [["push", "empty", "--robot", "a"], {}, 1, "no file"],
      [["push", "linked", "--robot", "a"], {}, 1, "symbolic link"],
      [["show", "lab-7"], {}, 2, "expected ROBOT RUN"],
      [["show", "lab-7", "none"], {}, 1, "run_not_found"],
      [["pull", "lab-7", "none"], {}, 1, "run_not_found"],
      [["delete", "lab-7", "none"], {}, 2, "--yes"],
      [["delete", "lab-7", "none", "--yes"], {}, 1, "run_not_found"],
      [["remove", "lab-7", "none"], {}, 2, "there is no sub-command"],
      [["usage"], { TENDON_API_KEY: "tdn_wrong" }, 3, "invalid_api_key"],
      [["usage"], { TENDON_API_KEY: "" }, 3, "tendon login"],
      [["usage", "--base-url", "http://127.0.0.1:1"], {}, 4, "cannot reach"],
      [["push", "fold-1", "--robot", "a", "--base-url", "http://127.0.0.1:1"], {}, 4, "cannot reach"],
    ];
    for (const [words, env, code, says] of cases) {
      const ended = await place.run(["runs", ...words], { ...signedIn(), ...env });
      expect([words, ended]).toEqual([words, { code, stdout: "", stderr: expect.stringContaining(says) }]);
      expect([words, ended.stderr.trim().split("\n").length, isClear(ended.stderr)]).toEqual([words, 1, true]);
    }
  }, 60_000);

  test("Ctrl-C leaves a push and a pull with exit 130, and the same command goes on", async () => {
    await using link = await BadLink.to(service.url);
    const bytes = randomBytes(80 * 2 ** 20);
    await Bun.write(place.path("long/video.mp4"), bytes);
    for (const words of ["push long --robot lab-7", "pull lab-7 long long-copy"]) {
      const child = place.spawn(["runs", ...words.split(" ")], signedIn(link.url));
      let seen = 0;
      link.onRequest = (line) => {
        seen += 1;
        // The last of five parts of the push, which begins when another has ended; the file of the pull.
        if (line.includes("part=5") || line.includes("/files/")) child.kill("SIGINT");
      };
      const said = await child.stderr.text();
      expect([words, await child.exited, said.trim()]).toEqual([
        words,
        130,
        `tendon runs ${words.slice(0, 4)}: left; what was done is kept: the same command goes on from there`,
      ]);
      expect(seen).toBeGreaterThan(0);
      link.onRequest = () => {};
      link.take("");
      expect([words, (await run(words, signedIn(link.url))).code]).toEqual([words, 0]);
      if (words.startsWith("push")) expect(link.take("PUT ").length).toBeLessThanOrEqual(4);
    }
    expect(Buffer.from(await Bun.file(place.path("long-copy/video.mp4")).bytes()).equals(bytes)).toBe(true);
  }, 60_000);

  test("on a terminal a push draws one line, and takes it away", async () => {
    const under = ["sh", "-c", 'script -qec "$*" /dev/null', "sh"];
    await using link = await BadLink.to(service.url);
    link.next("PUT ", { kind: "answer", status: 503, code: "storage_busy", headers: "retry-after: 3" });
    const child = place.spawn(
      ["runs", "push", "fold-1", "--robot", "lab-7", "--run", "drawn"],
      signedIn(link.url),
      under,
    );
    const shown = await child.stdout.text();
    expect(shown).toContain("again in 0:02: storage_busy: on pu");
    expect(shown).toContain("\r\u001b[Klab-7/drawn: 2 files, 100 kB, complete");
  });
});
