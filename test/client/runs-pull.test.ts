/** Pulls from a service over a bad link. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, openSync, writeSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pull } from "../../src/client/runs/pull.ts";
import { EXIT } from "../../src/std/problem.ts";
import { bad, good, Heard, type RunService, RunsPlace, runService } from "./runs-place.ts";

const BYTES = 6_000_000;
const GET_FILE = "GET /v1/robot/runs/lab-7/";

let service: RunService;
beforeAll(async () => {
  service = await runService();
});
afterAll(async () => await service[Symbol.asyncDispose]());

/** A place whose run is complete, a small file and a larger one. */
async function pushed(): Promise<RunsPlace> {
  const place = await RunsPlace.at(service);
  await place.write("logs/episode ü.jsonl", "{}\n");
  await place.write("video.mp4", BYTES);
  await place.write("empty", "");
  good(await place.push());
  place.link.take("");
  return place;
}

async function expectCopy(place: RunsPlace): Promise<void> {
  const [there, here] = [await place.contents("copy"), await place.contents("episode")];
  expect([...there.keys()].sort()).toEqual([...here.keys()].sort());
  for (const [path, bytes] of here) expect([path, there.get(path)?.equals(bytes)]).toEqual([path, true]);
  expect([place.heard.bytes, place.heard.files]).toEqual([BYTES + 3, 3]);
}

const videos = (place: RunsPlace) => place.link.heads.filter((head) => head.includes("/files/video.mp4"));

test("writes every file, and what is there with the right digest is not fetched again", async () => {
  await using place = await pushed();
  expect(good(await place.pull())).toMatchObject({ fetched: { files: 3, bytes: BYTES + 3 }, there: { files: 0 } });
  await expectCopy(place);
  await Bun.write(join(place.dir, "copy/logs/episode ü.jsonl"), "{]\n");
  place.link.take("");
  expect(good(await place.pull())).toMatchObject({ fetched: { files: 1, bytes: 3 }, there: { bytes: BYTES } });
  expect(place.link.take(GET_FILE)).toHaveLength(2);
  await expectCopy(place);
});

test("a download that is cut goes on by Range, if the file is still the same", async () => {
  await using place = await pushed();
  place.link.next(`${GET_FILE}${place.run.run}/files/video.mp4`, { kind: "cut down", atByte: 2_000_000 });
  good(await place.pull());
  const [first, second, ...more] = videos(place);
  expect(more).toEqual([]);
  expect(first).not.toMatch(/\nrange:/i);
  expect(Number(/\nrange: bytes=(\d+)-\r/i.exec(second ?? "")?.[1])).toBeGreaterThan(1_000_000);
  expect(second).toMatch(/\nif-range: "sha256-[0-9a-f]{64}"/i);
  await expectCopy(place);
});

test("a pull that was stopped keeps FILE.partial, and the next one goes on from there", async () => {
  await using place = await pushed();
  const left = new AbortController();
  place.heard.onMoved = (bytes) => {
    if (bytes > BYTES / 2) left.abort();
  };
  bad(await place.pull("copy", left.signal));
  const partial = (await place.contents("copy")).get("video.mp4.partial");
  expect(partial?.length).toBeGreaterThan(BYTES / 4);
  place.heard.onMoved = () => {};
  place.link.take("");
  good(await place.pull());
  expect(videos(place)[0]).toContain(`ange: bytes=${partial?.length}-\r`);
  await expectCopy(place);
});

test("bytes that arrive damaged are fetched anew", async () => {
  await using place = await pushed();
  place.link.next(`${GET_FILE}${place.run.run}/files/video.mp4`, { kind: "flip down", atByte: 1_000_000 });
  good(await place.pull());
  expect(videos(place)).toHaveLength(2);
  await expectCopy(place);
});

test("what lies in FILE.partial and belongs to another file is not kept", async () => {
  await using place = await pushed();
  await Bun.write(join(place.dir, "copy/video.mp4.partial"), "of another file");
  await Bun.write(join(place.dir, "copy/empty.partial"), "too long");
  good(await place.pull());
  await expectCopy(place);
});

test("a file is done only if the digest of what lies on the disk is the manifest's", async () => {
  await using place = await pushed();
  let damaged = false;
  place.heard.onMoved = (bytes) => {
    if (damaged || bytes < BYTES / 2) return;
    damaged = true;
    // Every byte has arrived as it was sent; on the disk the first ones are others.
    const file = openSync(join(place.dir, "copy/video.mp4.partial"), "r+");
    writeSync(file, "damaged", 0);
    closeSync(file);
  };
  good(await place.pull());
  expect(videos(place)).toHaveLength(2);
  await expectCopy(place);
});

test("of two pulls into one folder the second ends at once, and the first goes on", async () => {
  await using place = await pushed();
  let second: ReturnType<typeof pull> | undefined;
  place.heard.onMoved = () => {
    second ??= pull({ url: service.url, apiKey: service.key }, place.wanted("copy"), new Heard());
  };
  good(await place.pull());
  const problem = bad(await second);
  expect([problem.exit, problem.message]).toEqual([EXIT.usage, expect.stringContaining("another tendon runs pull")]);
  await expectCopy(place);
  expect(good(await place.pull())).toMatchObject({ there: { files: 3 } });
});

test("a pull that is killed leaves no lock behind it", async () => {
  await using place = await pushed();
  const folder = join(place.dir, "copy");
  await mkdir(folder);
  const lock = JSON.stringify(join(import.meta.dir, "../../src/std/file-lock.ts"));
  const path = JSON.stringify(join(folder, ".tendon-pull"));
  const script = `import { lockFile } from ${lock}; globalThis.kept = lockFile(${path}); console.log("held"); setInterval(() => {}, 9_999);`;
  await using holder = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  const { value } = await holder.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("held\n");
  expect(bad(await place.pull()).exit).toBe(EXIT.usage);
  holder.kill("SIGKILL");
  await holder.exited;
  good(await place.pull());
  await expectCopy(place);
});

test("a run may have a folder of the name that the lock would have", async () => {
  await using place = await RunsPlace.at(service);
  const { robot, run } = place.wanted("copy").run;
  const headers = { authorization: `Bearer ${service.key}`, "content-type": "application/json" };
  const send = (method: string, route: string, body: string) =>
    fetch(`${service.url}/v1/robot/runs/${robot}/${run}/${route}`, { method, headers, body });
  const files = [{ path: ".tendon-pull/a", size: 1 }];
  const sent = [
    await send("PUT", "files/.tendon-pull/a", "1"),
    await send("POST", "complete", JSON.stringify({ files })),
  ];
  expect(sent.map(({ status }) => status)).toEqual([201, 200]);
  good(await place.pull());
  const names = await readdir(join(place.dir, "copy"), { recursive: true });
  expect(names.sort()).toEqual([".tendon-pull", ".tendon-pull/a"]);
});

test("the whole file in place of its rest begins it again", async () => {
  await using place = await pushed();
  await Bun.write(join(place.dir, "copy/video.mp4.partial"), "of another file");
  place.link.next(`${GET_FILE}${place.run.run}/files/video.mp4`, { kind: "hide range" });
  good(await place.pull());
  expect(videos(place)).toHaveLength(1);
  await expectCopy(place);
});

test("a service that is busy is asked again", async () => {
  await using place = await pushed();
  place.link.next(`${GET_FILE}${place.run.run}/files/`, { kind: "answer", status: 503, code: "storage_busy" });
  good(await place.pull());
  expect(place.heard.waits[0]?.why).toStartWith("storage_busy");
  await expectCopy(place);
});

test("a run that is not there is exit 1, and no folder is made", async () => {
  await using place = await RunsPlace.at(service);
  const problem = bad(await place.pull());
  expect([problem.exit, problem.message]).toEqual([EXIT.failed, expect.stringContaining("run_not_found")]);
  expect(place.contents("copy")).rejects.toThrow("ENOENT");
});

test("a symbolic link in the folder does not lead the files out of it", async () => {
  await using place = await pushed();
  await mkdir(join(place.dir, "elsewhere"));
  await mkdir(join(place.dir, "copy"));
  await symlink("../elsewhere", join(place.dir, "copy/logs"));
  expect(bad(await place.pull()).message).toContain("'logs' on its way is no folder");
  expect((await place.contents("elsewhere")).size).toBe(0);
});

test("a symbolic link in place of FILE.partial is not written through", async () => {
  await using place = await pushed();
  await Bun.write(join(place.dir, "precious"), "mine");
  await mkdir(join(place.dir, "copy"));
  await symlink("../precious", join(place.dir, "copy/video.mp4.partial"));
  expect(bad(await place.pull()).message).toContain("'video.mp4' cannot be written");
  expect(await Bun.file(join(place.dir, "precious")).text()).toBe("mine");
});

test("a service that lists a path that leads out of the folder is not believed", async () => {
  const dir = await mkdtemp(join(tmpdir(), "tendon-pull-"));
  let path = "";
  const file = () => ({ path, size: 1, sha256: "0".repeat(64), content_type: "text/plain" });
  const facts = { object: "robot.run", robot: "r", run: "r", completed_at: 1, size: 1, metadata: {} };
  await using evil = Bun.serve({ port: 0, fetch: () => Response.json({ ...facts, files: [file(), file()] }) });
  const service = { url: evil.url.origin, apiKey: "tdn_x" };
  const run = { robot: "r", run: "r" };
  for (path of ["../up", "/etc/x", "a/../../up", "a\\..\\up", "a//b", "", "a\nb", "x".repeat(513), "twice"]) {
    const outcome = await pull(service, { run, folder: join(dir, "copy"), parallel: 1 }, new Heard());
    expect([path, bad(outcome).message]).toEqual([path, expect.stringContaining("nothing was written")]);
  }
  expect(await readdir(dir)).toEqual([]);
  await rm(dir, { recursive: true });
});
