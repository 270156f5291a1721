import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cameraFiles, inModelOrder } from "../../src/cli/act/cameras.ts";
import { act } from "../../src/cli/act.ts";
import { given } from "../../src/cli/frame/command.ts";
import type { EpisodeHead, EpisodeObservation } from "../../src/client/episode-log/format.ts";
import { signedIn } from "../../src/client/sign-in.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { CHUNK, CHUNK_COLUMNS } from "../client/sample-chunk.ts";

const JPEG = "test/vectors/jpeg/420.jpg";
const completion = { choices: [{ index: 0, message: { role: "assistant", content: JSON.stringify(CHUNK) } }] };

const short = { choices: [{ message: { content: JSON.stringify({ ...CHUNK, actions: CHUNK.actions.slice(0, 2) }) } }] };

interface Seen {
  messages: { content: string | { type: string; image_url?: { url: string } }[] }[];
  session_id?: string;
  seed?: number;
}
const seen: Seen[] = [];
/** The answer to an observation, and to the question for the models. */
let reply: (body: Seen) => Response = () => Response.json(completion);
let models: () => Response = () => served("top, left");
let server: ReturnType<typeof Bun.serve>;
let dir = "";
const keyBefore = process.env.TENDON_API_KEY;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "tendon-act-"));
  await Bun.write(join(dir, "state.json"), '{"joint_position":[],"gripper_position":[]}');
  process.env.TENDON_API_KEY = "tdn_test";
  server = Bun.serve({
    port: 0,
    fetch: async (request) => {
      if (request.method === "GET") return models();
      const body = (await request.json()) as Seen;
      seen.push(body);
      return reply(body);
    },
  });
});
afterAll(async () => {
  if (keyBefore === undefined) delete process.env.TENDON_API_KEY;
  else process.env.TENDON_API_KEY = keyBefore;
  await server.stop(true);
  await rm(dir, { recursive: true, force: true });
});

/** A list of models with one, whose cameras are these. */
function served(cameras: string, facts: object = {}): Response {
  const state_columns = [
    { name: "left_joint_1", unit: "rad", from: "joint_position", index: 0 },
    { name: "left_gripper", unit: "1", from: "gripper_position", index: 0 },
  ];
  const action_columns = CHUNK_COLUMNS.map((column) => ({ ...column, min: -4, max: 4 }));
  const model = { id: "other/robot:x", cameras: cameras.split(", "), frames: { first: 1, later: 1 }, state: "joint" };
  return Response.json({ data: [{ ...model, state_columns, action_columns, bundle: "trained", ...facts }] });
}

const base = ["--model", "other/robot:x", "--instruction", "go", "--state"];
const images = ["--image", `top=${JPEG}`, "--image", `left=${JPEG}`];

async function runAct(...argv: string[]): Promise<number | Problem> {
  const parsed = given(act, argv);
  return parsed instanceof Problem ? parsed : act.run(parsed);
}
const address = () => `http://127.0.0.1:${server.port}`;
const stateFile = () => join(dir, "state.json");

test("act sends the observation in the camera order that the service names and draws the chunk", async () => {
  seen.length = 0;
  models = () => served("left, top", { bundle: "reference" });
  reply = () => Response.json(short);
  const plot = join(dir, "plot.svg");
  const other = ["--image", "left=test/vectors/jpeg/gray.jpg", "--image", `top=${JPEG}`];
  const end = await runAct(
    ...[...base, stateFile(), ...other.slice(2), ...other.slice(0, 2), "--session", "s"],
    ...["--base-url", `${address()}/`, "--plot", plot, "--json"],
  );
  expect(end).toBe(EXIT.done);
  expect(seen).toHaveLength(1);
  const sent = seen[0]?.messages[0]?.content;
  const left = (await Bun.file("test/vectors/jpeg/gray.jpg").bytes()).toBase64();
  expect(typeof sent === "object" && sent[1]?.image_url?.url).toBe(`data:image/jpeg;base64,${left}`);
  expect(seen[0]).toMatchObject({ session_id: "s" });
  const svg = await Bun.file(plot).text();
  expect(svg).toContain("other/robot:x, step 0");
  expect(svg).toContain("random weights");
});

test("act says how many values were clamped, in words and with --json; nothing of it where none was", async () => {
  const clamped = (count: object) => ({
    choices: [{ message: { content: JSON.stringify({ ...CHUNK, ...count }) } }],
  });
  models = () => served("top, left");
  let printed = "";
  const write = spyOn(Bun, "write").mockImplementation(((to: Bun.BunFile, text: string) => {
    if (to === Bun.stdout) printed += text;
    return Promise.resolve(text.length);
  }) as typeof Bun.write);
  try {
    const seenOf = async (count: object, ...flags: string[]) => {
      printed = "";
      reply = () => Response.json(clamped(count));
      expect(await runAct(...base, stateFile(), ...images, "--base-url", address(), ...flags)).toBe(EXIT.done);
      return printed;
    };
    expect(await seenOf({ clamped: 5 })).toContain("\nvalues outside the range of their column, clamped: 5\n");
    expect(JSON.parse(await seenOf({ clamped: 5 }, "--json"))).toMatchObject({ clamped: 5 });
    expect(await seenOf({})).not.toContain("clamped");
  } finally {
    write.mockRestore();
  }
});

test("wrong use exits with 2 and says what was expected", async () => {
  for (const argv of [
    [],
    [...base, stateFile()],
    [...base, stateFile(), "--image", "top"],
    [...base, stateFile(), "--image", "=x"],
    [...base, stateFile(), ...images, "stray"],
    [...base, stateFile(), ...images, "--base-url", "ftp://x"],
    [...base, stateFile(), ...images, "--url", address()],
  ]) {
    expect(await runAct(...argv)).toMatchObject({ exit: EXIT.usage });
  }
});

test("an unknown or a missing camera is wrong use, by the service's own words, and so is an unknown model", async () => {
  const of = async (model: string, ...cameras: string[]) =>
    runAct(
      ...["--model", model, "--instruction", "go", "--state", stateFile(), "--base-url", address()],
      ...cameras.flatMap((camera) => ["--image", `${camera}=${JPEG}`]),
    );
  const unknown = { exit: EXIT.usage, message: expect.stringContaining("no camera 'right'") };
  const missing = { exit: EXIT.usage, message: expect.stringContaining("no frame of camera 'left'") };
  // The second model's bundle is installed here, with the cameras top, left, right: that does not count.
  for (const model of ["other/robot:x", "vendorB/molmoact2:yam"]) {
    models = () => served("top, left", { id: model });
    expect(await of(model, "top", "left", "right")).toMatchObject(unknown);
    expect(await of(model, "top")).toMatchObject(missing);
  }
  const none = { exit: EXIT.failed, message: expect.stringContaining("no robot model 'lab/arm'; it has: vendorB/mol") };
  expect(await of("lab/arm", "top")).toMatchObject(none);
  models = () => Response.json({ data: [{ id: "lab/arm" }] });
  expect(await of("lab/arm", "top")).toMatchObject({
    message: expect.stringContaining("without a list of robot models"),
  });
  models = () => served("top, left");
});

test("a refusal is shown as code and message; 401 exits with 3", async () => {
  reply = () => Response.json({ error: { code: "session_busy", message: "later" } }, { status: 409 });
  const refused = await runAct(...base, stateFile(), ...images, "--base-url", address());
  expect(refused).toMatchObject({ exit: EXIT.failed, message: "session_busy: later" });
  reply = () => Response.json({ error: { code: "invalid_api_key", message: "wrong key" } }, { status: 401 });
  expect(await runAct(...base, stateFile(), ...images, "--base-url", address())).toMatchObject({
    exit: EXIT.notSignedIn,
  });
  reply = () => new Response("<html>", { status: 502 });
  expect(await runAct(...base, stateFile(), ...images, "--base-url", address())).toMatchObject({ exit: EXIT.failed });
});

test("nobody listening exits with 4, no key with 3", async () => {
  const nobody = Bun.serve({ port: 0, fetch: () => new Response("") });
  const port = nobody.port;
  await nobody.stop(true);
  const end = await runAct(...base, stateFile(), ...images, "--base-url", `http://127.0.0.1:${port}`);
  expect(end).toMatchObject({ exit: EXIT.unreachable });
  expect(await signedIn(undefined, { XDG_CONFIG_HOME: dir })).toMatchObject({ exit: EXIT.notSignedIn });
});

test("unusable files are named", async () => {
  const state = ["--base-url", address()];
  for (const [argv, named] of [
    [[...base, "/nowhere/state.json", ...images, ...state], "/nowhere/state.json"],
    [[...base, JPEG, ...images, ...state], JPEG],
    [[...base, stateFile(), "--image", "top=/nowhere.jpg", "--image", `left=${JPEG}`, ...state], "/nowhere.jpg"],
    [[...base, stateFile(), "--image", `top=${stateFile()}`, "--image", `left=${JPEG}`, ...state], "not a JPEG"],
  ] as const) {
    const end = await runAct(...argv);
    expect(end).toBeInstanceOf(Problem);
    expect((end as Problem).message).toContain(named);
  }
});

test("frames are grouped by camera and put into the model's order", () => {
  const cameras = cameraFiles(["left=a", "top=b", "left=c=d"]);
  if ("wrong" in cameras) throw new Error(cameras.wrong);
  expect(inModelOrder(cameras, "m", ["top", "left"])).toEqual([
    { camera: "top", files: ["b"] },
    { camera: "left", files: ["a", "c=d"] },
  ]);
  expect(inModelOrder(cameras, "m", ["top", "right"])).toMatchObject({
    exit: EXIT.usage,
    message: expect.stringContaining("'left'"),
  });
  expect(inModelOrder(cameras, "m", ["top", "left", "right"])).toMatchObject({
    exit: EXIT.usage,
    message: expect.stringContaining("--image right=FILE"),
  });
});

test("a flag that cannot be read is explained in one line", () => {
  for (const argv of [["--nonsense"], ["--model", "--plot"], ["--model"], ["--json=yes"], ["--a\nb"]]) {
    const parsed = given(act, argv);
    expect(parsed).toMatchObject({
      exit: EXIT.usage,
      message: expect.stringMatching(/^[^\n.]+; see: tendon act --help$/),
    });
  }
});

describe("act --record", () => {
  const said = (chunk: object) => Response.json({ choices: [{ message: { content: JSON.stringify(chunk) } }] });
  let observations = 0;
  const serve = (cameras: string, answer: () => Response = () => said({ ...CHUNK, step: 4 }), facts: object = {}) => {
    observations = 0;
    models = () => served(cameras, facts);
    reply = () => {
      observations += 1;
      return answer();
    };
  };
  const record = (name: string, left = "left") =>
    runAct(
      ...[...base, stateFile(), "--image", `${left}=test/vectors/jpeg/gray.jpg`, "--image", `top=${JPEG}`, "--json"],
      ...["--base-url", address(), "--record", join(dir, name)],
    );

  test("writes the observation as it was sent, its chunk and its times", async () => {
    await Bun.write(stateFile(), '{"joint_position":[0.5,-1],"gripper_position":[0.25]}');
    serve("top, left");
    expect(await record("run")).toBe(EXIT.done);
    const [head, line, ...more] = Bun.JSONL.parse(await Bun.file(join(dir, "run/episode.jsonl")).text()) as [
      EpisodeHead,
      EpisodeObservation,
    ];
    expect(more).toEqual([]);
    expect(head).toMatchObject({
      ...{ type: "episode", version: 1, model: "other/robot:x", session_id: "anon-1", instruction: "go" },
      cameras: [{ name: "top" }, { name: "left" }],
      state: { space: "joint_position", names: ["left_joint_1", "left_gripper"] },
      action: { space: "joint_position", dt: CHUNK.dt },
    });
    expect(head.action.names).toEqual(CHUNK_COLUMNS.map(({ name }) => name));
    expect(Math.abs(head.started_at - Date.now() / 1000)).toBeLessThan(600);
    expect(line).toEqual({
      ...{ type: "observation", t: expect.any(Number), step: 4, observation_id: null, state: [0.5, 0.25] },
      frames: { top: ["frames/top/000000.jpg"], left: ["frames/left/000000.jpg"] },
      chunk: { id: null, start: expect.any(Number), actions: CHUNK.actions },
      ...{ latency_ms: expect.any(Number), timing_ms: CHUNK.timing_ms },
    });
    // Its rows are due when they came.
    expect(line.chunk?.start).toBeCloseTo(line.t + (line.latency_ms ?? 0) / 1000, 4);
    const frame = await Bun.file(join(dir, "run/frames/top/000000.jpg")).bytes();
    expect(frame).toEqual(await Bun.file(JPEG).bytes());
  });

  test("a robot that is not a YAM has its columns' names in the log", async () => {
    await Bun.write(stateFile(), '{"state":[12.5,-1]}');
    const columns = ["shoulder", "wrist"].map((name, index) => ({ name, unit: "deg", from: "state", index }));
    const action_columns = columns.map(({ name, unit }) => ({ name, unit, min: -90, max: 90 }));
    const chunk = { ...CHUNK, action_dim: 2, action_space: "vector", actions: [[1, 2]] };
    serve("top, left", () => said(chunk), { state: "vector", state_columns: columns, action_columns });
    expect(await record("arm")).toBe(EXIT.done);
    const [head, line] = Bun.JSONL.parse(await Bun.file(join(dir, "arm/episode.jsonl")).text());
    const names = ["shoulder", "wrist"];
    expect(head).toMatchObject({ state: { space: "vector", names }, action: { space: "vector", names } });
    expect(line).toMatchObject({ state: [12.5, -1] });
  });

  test("refuses a folder that is not empty, and a camera whose name is none for a path, before anything is sent and paid for", async () => {
    serve("top, left");
    await Bun.write(join(dir, "full/other.txt"), "x");
    expect(await record("full")).toMatchObject({ exit: EXIT.failed, message: expect.stringContaining("is not empty") });
    serve("../left, top");
    const strange = { exit: EXIT.usage, message: expect.stringContaining("'../left' cannot be recorded") };
    expect(await record("strange", "../left")).toMatchObject(strange);
    expect(observations).toBe(0);
  });

  test("leaves an empty folder where the observation is refused, so that the same line may be typed again", async () => {
    serve("top, left", () => Response.json({ error: { code: "session_busy", message: "later" } }, { status: 409 }));
    expect(await record("again")).toMatchObject({ exit: EXIT.failed });
    expect(await readdir(join(dir, "again"))).toEqual([]);
    serve("top, left");
    expect(await record("again")).toBe(EXIT.done);
  });
});
