import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { act } from "../../src/cli/act.ts";
import { given } from "../../src/cli/frame/command.ts";
import { openEpisode } from "../../src/client/episode-log/read.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { Folder, JPEG } from "../client/episode-log/sample-run.ts";
import { CHUNK } from "../client/sample-chunk.ts";

let server: ReturnType<typeof Bun.serve>;
let folder: Folder;
let observations = 0;
let refuse = false;
let cameras = "top, left";
const keyBefore = process.env.TENDON_API_KEY;

beforeAll(async () => {
  folder = await Folder.make();
  await Bun.write(folder.at("state.json"), '{"joint_position":[0.5,-1],"gripper_position":[0.25]}');
  process.env.TENDON_API_KEY = "tdn_test";
  const reply = (content: string) => Response.json({ choices: [{ message: { role: "assistant", content } }] });
  server = Bun.serve({
    port: 0,
    fetch: async (request) => {
      const { messages } = (await request.json()) as { messages: { content: unknown }[] };
      if (typeof messages[0]?.content === "string") return reply(`Cameras, in this order: ${cameras}.`);
      observations += 1;
      if (refuse) return Response.json({ error: { code: "session_busy", message: "later" } }, { status: 409 });
      return reply(JSON.stringify({ ...CHUNK, step: 4 }));
    },
  });
});
afterAll(async () => {
  if (keyBefore === undefined) delete process.env.TENDON_API_KEY;
  else process.env.TENDON_API_KEY = keyBefore;
  await server.stop(true);
  await folder[Symbol.asyncDispose]();
});

async function runAct(record: string, left = "left"): Promise<number | Problem> {
  const images = [`${left}=test/vectors/jpeg/gray.jpg`, "top=test/vectors/jpeg/420.jpg"];
  const argv = [
    ...["--model", "other/robot:x", "--instruction", "go", "--state", folder.at("state.json"), "--json"],
    ...images.flatMap((image) => ["--image", image]),
    ...["--base-url", `http://127.0.0.1:${server.port}`, "--record", folder.at(record)],
  ];
  const parsed = given(act, argv);
  return parsed instanceof Problem ? parsed : await act.run(parsed);
}

test("act --record writes the observation as it was sent, its chunk and its times", async () => {
  expect(await runAct("run")).toBe(EXIT.done);
  const log = await openEpisode(folder.at("run"));
  if (log instanceof Problem) throw new Error(log.message);
  const rows = (CHUNK.actions[0] ?? []).length;
  expect(log.head).toMatchObject({
    ...{
      model: "other/robot:x",
      session_id: "anon-1",
      instruction: "go",
      cameras: [{ name: "top" }, { name: "left" }],
    },
    state: { space: "joint_position", names: ["joint_position_0", "joint_position_1", "gripper_position_0"] },
    action: { space: "joint_position", dt: CHUNK.dt },
  });
  expect(log.head.action.names).toHaveLength(rows);
  expect(Math.abs(log.head.started_at - Date.now() / 1000)).toBeLessThan(600);
  const lines = await Array.fromAsync(log.observations);
  expect(lines).toEqual([
    {
      ...{ type: "observation", t: expect.any(Number), step: 4, observation_id: null, state: [0.5, -1, 0.25] },
      frames: { top: ["frames/top/000000.jpg"], left: ["frames/left/000000.jpg"] },
      chunk: { id: null, start: expect.any(Number), actions: CHUNK.actions },
      ...{ latency_ms: expect.any(Number), timing_ms: CHUNK.timing_ms },
    },
  ]);
  const [line] = lines;
  if (line === undefined || line instanceof Problem) throw new Error("no line");
  // Its rows are due when they came.
  expect(line.chunk?.start).toBeCloseTo(line.t + (line.latency_ms ?? 0) / 1000, 4);
  expect(await Bun.file(folder.at("run/frames/top/000000.jpg")).bytes()).toEqual(JPEG);
});

test("a folder that is not empty is refused before the observation is sent and paid for", async () => {
  const before = observations;
  await Bun.write(folder.at("full/other.txt"), "x");
  expect(await runAct("full")).toMatchObject({ exit: EXIT.failed, message: expect.stringContaining("is not empty") });
  expect(observations).toBe(before);
});

test("a camera whose name is not one for a path is refused likewise", async () => {
  const before = observations;
  const strange = { exit: EXIT.usage, message: expect.stringContaining("'../left' cannot be recorded") };
  cameras = "../left, top";
  expect(await runAct("strange", "../left")).toMatchObject(strange);
  cameras = "top, left";
  expect(observations).toBe(before);
});

test("a refused observation leaves an empty folder, so that the same line may be typed again", async () => {
  refuse = true;
  expect(await runAct("again")).toMatchObject({ exit: EXIT.failed });
  expect(await readdir(folder.at("again"))).toEqual([]);
  refuse = false;
  expect(await runAct("again")).toBe(EXIT.done);
});
