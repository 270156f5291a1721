/**
 * The clients of `/docs/episodes` as their reader has them, against the whole program: Python's `websockets` and Bun's own
 * WebSocket. The `python3` of PATH must have `websockets`; a virtual environment is enough.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ActionChunk } from "../../src/client/chunk.ts";
import { testRequirement } from "../../src/config/environment.ts";
import source from "../../src/robot/docs/episodes.md" with { type: "text" };
import { blocksOf } from "../docs/blocks.ts";
import { chunkOf, Place, type Server } from "./program.ts";
import { footage, framesAt, observe, ROBOTS, type RobotFacts } from "./robot.ts";

const CHUNKS = 50;
const PYTHON = "python3";
const WITHOUT =
  "python3 has no websockets 12 or newer; in a virtual environment whose bin is first in PATH, pip install websockets";

const hasPython =
  Bun.which(PYTHON) !== null &&
  Bun.spawnSync([PYTHON, "-c", "from websockets.sync.client import connect"], { stderr: "ignore" }).exitCode === 0;
const absent = !hasPython && testRequirement() === "none";

const CLIENTS = [
  { name: "TypeScript", command: [process.execPath, "episode.ts"], skip: false },
  {
    name: absent ? `Python, skipped: ${WITHOUT}` : "Python",
    command: [PYTHON, "episode.py"],
    skip: absent,
  },
] as const;

/** What both clients say of a session that `session.opened` marks as `reference`. */
const RANDOM = expect.stringContaining("never move a real arm");

interface Chunk {
  readonly type: string;
  readonly step: number;
  readonly actions: number[][];
}

let place: Place;
let server: Server;
let cameras: Uint8Array[][];

beforeAll(async () => {
  ({ cameras } = await footage(1));
  place = await Place.make();
  server = await place.serve();
  for (const [file, language] of Object.entries({ "episode.ts": "ts", "episode.py": "python" })) {
    await Bun.write(place.path(file), blocksOf(source).find((block) => block.language === language)?.code ?? "");
  }
  for (const [index, frames] of cameras.entries()) await Bun.write(place.path(`${index}.jpg`), frames[0] ?? "");
}, 60_000);

afterAll(async () => {
  await server.stop();
  await place[Symbol.asyncDispose]();
});

/** The body of the observation that the clients send at every step, over HTTP. */
function body(robot: RobotFacts, step: number, extra: object = {}): object {
  return { ...observe(robot, 0, framesAt(robot, step, cameras)), ...extra };
}

async function run(
  command: readonly [program: string, file: string],
  robot: RobotFacts,
  chunks: number,
  {
    at = server,
    key = at.ready.api_key,
    flags = ["--yes-random"],
  }: { at?: Server; key?: string; flags?: string[] } = {},
) {
  const state = place.path(`${robot.model.replace(/\W/g, "-")}.json`);
  await Bun.write(state, JSON.stringify((body(robot, 0) as { robot_state: object }).robot_state));
  const frames = cameras.map((_, index) => place.path(`${index}.jpg`));
  const [program, file] = command;
  const child = Bun.spawn(
    [program, place.path(file), at.ready.url, robot.model, String(chunks), state, ...frames, ...flags],
    {
      env: { PATH: process.env.PATH ?? "", HOME: place.home, TENDON_API_KEY: key },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [out, said] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const lines = out.split("\n").filter((line) => line !== "");
  return { code: await child.exited, said, chunks: lines.map((line) => JSON.parse(line) as Chunk) };
}

/** The rows of an episode over HTTP with the same observations. */
async function overHttp(robot: RobotFacts): Promise<ActionChunk["actions"][]> {
  const actions: ActionChunk["actions"][] = [];
  for (let step = 0; step < CHUNKS; step += 1) {
    const response = await server.post(JSON.stringify(body(robot, step, { session_id: "http", expected_step: step })));
    expect([step, response.status]).toEqual([step, 200]);
    actions.push((await chunkOf(response)).actions);
  }
  return actions;
}

describe("an episode of 50 chunks, bit-equal to the one over HTTP", () => {
  for (const robot of ROBOTS) {
    let expected: Promise<ActionChunk["actions"][]> | undefined;
    for (const { name, command, skip } of CLIENTS) {
      test.skipIf(skip)(
        `${robot.model}, ${name}`,
        async () => {
          const { code, said, chunks } = await run(command, robot, CHUNKS);
          // Nothing on standard error but that these weights are random.
          expect([code, said.trim().split("\n")]).toEqual([0, [RANDOM]]);
          expect(chunks.map(({ type, step }) => `${type} ${step}`)).toEqual(
            Array.from({ length: CHUNKS }, (_, step) => `action_chunk ${step}`),
          );
          expected ??= overHttp(robot);
          const actions = chunks.map((chunk) => chunk.actions);
          for (const rows of actions) expect([rows.length, rows[0]?.length]).toEqual([robot.rows, robot.columns]);
          expect<unknown>(actions).toEqual(await expected);
        },
        120_000,
      );
    }
  }
});

describe("a client branches on code and closing", () => {
  const [, , joint] = ROBOTS;
  if (!joint) throw new Error("no robot");

  for (const { name, command, skip } of CLIENTS) {
    test.skipIf(skip)(
      `failures that pass: the session goes on on the next connection, ${name}`,
      async () => {
        // One more than a client tries in a row: every chunk starts its count anew.
        const failures = ["engine_unavailable", ...Array<string>(5).fill("model_failure")];
        const faults = failures.map((failure, step) => `${failure}:episode-@${step}`).join();
        await using own = await Place.make();
        const other = await own.serve([], { TENDON_FAULTS: faults });
        const { code, said, chunks } = await run(command, joint, 7, { at: other });
        expect([code, chunks.map(({ step }) => step)]).toEqual([0, [0, 1, 2, 3, 4, 5, 6]]);
        expect(said).toContain("engine_unavailable");
        expect(said).toContain("model_failure");
        expect(await other.stop()).toBe(0);
      },
      60_000,
    );

    test.skipIf(skip)(
      `random weights: told, and refused without --yes-random before anything is asked, ${name}`,
      async () => {
        const { code, said, chunks } = await run(command, joint, 3, { flags: [] });
        expect([code, chunks, said.trim()]).toEqual([1, [], RANDOM]);
      },
      60_000,
    );

    test.skipIf(skip)(
      `what was sent is wrong: it ends with the code, ${name}`,
      async () => {
        const { code, said, chunks } = await run(command, { ...joint, cartesian: true }, 3);
        expect([code, chunks]).toEqual([1, []]);
        expect(said).toMatch(/^state_shape_mismatch: /m);
        const unknown = await run(command, { ...joint, model: "none" }, 3);
        expect([unknown.code, unknown.said.split(":")[0]]).toEqual([1, "model_not_found"]);
      },
      60_000,
    );

    test.skipIf(skip)(
      `a handshake refused with 4xx is not repeated: a wrong key is told once, ${name}`,
      async () => {
        const { code, said, chunks } = await run(command, joint, 3, { key: `tdn_${"x".repeat(43)}` });
        expect([code, chunks, said.split("\n").length]).toEqual([1, [], 2]);
        expect(said).toContain("401");
      },
      60_000,
    );
  }
});
