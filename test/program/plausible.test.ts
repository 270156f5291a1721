/**
 * Plausible rows: "A column may also have max_jump … and max_step …; passing one is model_failure, never a chunk". Each limit of a bundle is
 * passed by the real engine, over HTTP and over a socket; a session that met it goes on as if nothing had been.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelFile } from "../../src/bundle/architecture.ts";
import type { Manifest, Parity } from "../../src/bundle/manifest.ts";
import type { ActionChunk } from "../../src/client/chunk.ts";
import { frameMessage } from "../../src/client/episode-messages.ts";
import { EpisodeSocket } from "../../src/client/episode-socket.ts";
import { requestBody } from "../../src/client/request.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/engine/native.ts";
import { present } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";
import { buildInto, bundleOf, emptyDir, MODEL_DIR, parityOf } from "../bundle/built.ts";
import { Opened, ok, rowsOf } from "../engine/opened.ts";
import { chunkOf, Place, type Server } from "./program.ts";

const INSTRUCTION = "fold the towel";
const STATE = { joint_position: Array(12).fill(0.3) as number[], gripper_position: [0.5, 1] };
/** The limits admit the chunk of one seed and not that of the other. */
const [GOOD, BAD] = [1, 2];
const STATEFUL = "vendorA/dreamzero-astra:yam";

type Columns = ModelFile["action"]["columns"];
type Limit = (columns: Columns, rows: readonly Seen[]) => void;
interface Seen {
  readonly rows: number[][];
  /** The state's value of each action column. */
  readonly state: number[];
}

const LIMITS: Readonly<Record<string, Limit>> = {
  max_jump: (columns, seen) =>
    columns.forEach((column, at) => {
      column.max_jump = largest(seen.map(({ rows, state }) => Math.abs(cell(rows[0], at) - cell(state, at))));
    }),
  max_step: (columns, seen) =>
    columns.forEach((column, at) => {
      const steps = seen.flatMap(({ rows }) =>
        rows.slice(1).map((row, i) => Math.abs(cell(row, at) - cell(rows[i], at))),
      );
      column.max_step = largest(steps);
    }),
  range: (columns, seen) =>
    columns.forEach((column, at) => {
      const values = seen.flatMap(({ rows }) => rows.map((row) => cell(row, at)));
      [column.min, column.max] = [Math.min(...values) - SLACK, Math.max(...values) + SLACK];
    }),
};
/** More than float32 and the parity vectors' decimals differ. */
const SLACK = 1e-3;

const cell = (row: readonly number[] | undefined, at: number) => present(row?.[at], "a value");
const largest = (values: readonly number[]) => Math.max(...values) + SLACK;

let place: Place;
let server: Server;
let jpegs: readonly Uint8Array[];
/** By the limited model's name. */
const goodRows = new Map<string, number[][]>();

beforeAll(async () => {
  place = await Place.make();
  await mkdir(place.path("models"));
  const engine = ok(await openEngine({ decodeThreads: 2 }));
  for (const [name, limit] of Object.entries(LIMITS)) await buildLimited(engine, name, "fail", limit);
  await buildLimited(engine, "clamped", "clamp", present(LIMITS.range, "range"));
  await engine.close();
  await buildInto(place.path("models/stateful"), join(MODEL_DIR, "../dreamzero-astra-yam"));
  const prices = 'prompt_usd_per_mtok = "0.5"\ncached_prompt_usd_per_mtok = "0.1"\nrow_usd_per_mrow = "40"\n';
  const sections = [...Object.keys(LIMITS), "clamped"].map((name) => `[robot."limits/${name}:yam"]\n${prices}`);
  await writeFile(place.path("tendon.toml"), sections.join("\n"));
  server = await place.serve(["--models", "models", "--config", "tendon.toml"]);
}, 120_000);

afterAll(async () => {
  await server.stop();
  await place[Symbol.asyncDispose]();
});

/**
 * molmoact2 under another id, with one kind of limit and no other. The id stands in the graphs and so keys the noise: the rows are
 * computed anew, by the engine, those of the parity vector too.
 */
async function buildLimited(engine: Engine, name: string, out: Manifest["action"]["out_of_range"], limit: Limit) {
  const dir = join(await emptyDir(), name);
  await cp(MODEL_DIR, dir, { recursive: true });
  const [path, vectors] = [join(dir, "model.json"), join(dir, "parity/chunk.json")];
  const model = JSON.parse(await readFile(path, "utf8")) as ModelFile;
  model.id = `limits/${name}:yam`;
  for (const column of model.action.columns) {
    delete column.max_jump;
    delete column.max_step;
    // Wide, so that the rows below are what the model gives.
    [column.min, column.max] = [-100, 100];
  }
  await writeFile(path, JSON.stringify(model));
  const parity = JSON.parse(await readFile(vectors, "utf8")) as Parity;
  const observation = present(parity.observations[0], "an observation");
  const seen = await rowsSeen(engine, dir);
  goodRows.set(name, seen.good.rows);
  observation.actions = seen.golden.rows;
  await writeFile(vectors, JSON.stringify(parity));
  model.action.out_of_range = out;
  limit(model.action.columns, [seen.good, seen.golden]);
  await writeFile(path, JSON.stringify(model));
  await buildInto(place.path(`models/${name}`), dir);
}

/** The rows of the good seed at step 0, and those of the parity observation. */
async function rowsSeen(engine: Engine, dir: string): Promise<{ good: Seen; golden: Seen }> {
  const { manifest, paths } = await bundleOf(dir);
  const loose = { paths, manifest: { ...manifest, parity: { ...manifest.parity, tolerance: 1e3 } } };
  const opened = await Opened.with(engine, loose);
  const { given } = await parityOf(loose);
  jpegs = given.jpegs;
  const { columns } = manifest.state;
  const vector = columns.map(({ from, index }) => cell(STATE[from as keyof typeof STATE], index));
  const named = (state: readonly number[]) =>
    manifest.action.columns.map(({ name }) =>
      cell(
        state,
        columns.findIndex((column) => column.name === name),
      ),
    );
  const good = await opened.give({ ...given, instruction: INSTRUCTION, state: vector, seed: GOOD, step: 0 });
  const golden = await opened.give(given);
  await opened.model.unload();
  return {
    good: { rows: rowsOf(good), state: named(vector) },
    golden: { rows: rowsOf(golden), state: named(given.state) },
  };
}

function send(model: string, session_id: string, extra: object, state: object = STATE): Promise<Response> {
  const body = requestBody({ model, instruction: INSTRUCTION, frames: jpegs, state });
  return server.post(JSON.stringify({ ...body, session_id, expected_step: 0, ...extra }));
}

/** The wire's decimals are the shortest that read back to the same float32. */
function asFloats({ actions }: ActionChunk): number[][] {
  return actions.map((row) => row.map(Math.fround));
}

async function expectFailure(answer: Response): Promise<void> {
  expect(await answer.json()).toMatchObject({ error: { code: "model_failure", type: "api_error" } });
}

async function credit(): Promise<string> {
  const { stdout } = await place.run(["admin", "account", "list", "--json"]);
  const { data } = JSON.parse(stdout) as { data: { settled: string; held: string }[] };
  return JSON.stringify(data.map(({ settled, held }) => [settled, held]));
}

for (const name of Object.keys(LIMITS)) {
  describe(`a chunk past ${name} is model_failure, and nothing of it stays`, () => {
    const model = `limits/${name}:yam`;

    test("over HTTP", async () => {
      const before = await credit();
      await expectFailure(await send(model, "s", { seed: BAD, observation_id: "o" }));
      expect(await credit()).toBe(before);
      const answer = await send(model, "s", { seed: GOOD, observation_id: "o" });
      expect([answer.status, answer.headers.get("x-session-step")]).toEqual([200, "0"]);
      const chunk = await chunkOf(answer);
      expect(asFloats(chunk)).toEqual(present(goodRows.get(name), name));
      expect(chunk.clamped).toBeUndefined();
    });

    test("over a socket", async () => {
      const service = { url: server.ready.url, apiKey: server.ready.api_key };
      for (const [seed, expected] of [
        [BAD, "model_failure"],
        [GOOD, undefined],
      ] as const) {
        const socket = await EpisodeSocket.connect(service);
        if (socket instanceof Problem) throw new Error(socket.message);
        const opened = await socket.open({ model, instruction: INSTRUCTION, format: "json", seed });
        if (opened instanceof Problem) throw new Error(opened.message);
        for (const [camera, jpeg] of jpegs.entries()) socket.frame(frameMessage(camera, jpeg));
        const chunk = await socket.observe({ robot_state: STATE });
        if (expected === undefined) expect(asFloats(chunk as ActionChunk)).toEqual(present(goodRows.get(name), name));
        else expect(chunk).toMatchObject({ message: expect.stringContaining(expected) });
        await socket.leave();
      }
    });
  });
}

test("a chunk past a range that clamps is sent inside it, says how many values, and metrics count them", async () => {
  const clampedTotal = async () => {
    const metrics = await (await fetch(`${server.ready.ops_url}/metrics`)).text();
    return Number(/^tendon_engine_values_clamped_total (\d+)$/m.exec(metrics)?.[1]);
  };
  const before = await clampedTotal();
  const chunk = await chunkOf(await send("limits/clamped:yam", "s", { seed: BAD }));
  expect(chunk.clamped).toBeGreaterThan(0);
  expect(await clampedTotal()).toBe(before + present(chunk.clamped, "clamped"));
  const { action } = JSON.parse(await readFile(place.path("models/clamped/manifest.json"), "utf8")) as Manifest;
  const inside = asFloats(chunk).every((row) =>
    action.columns.every(({ min, max }, at) => cell(row, at) >= Math.fround(min) && cell(row, at) <= Math.fround(max)),
  );
  expect(inside).toBe(true);
});

test("a model with memory keeps nothing of a run whose rows jump from the state: the session goes on as a clean one", async () => {
  const far = { ...STATE, joint_position: [50, ...STATE.joint_position.slice(1)] };
  const clean = await chunkOf(await send(STATEFUL, "clean", { seed: GOOD }));
  for (let time = 0; time < 2; time += 1) await expectFailure(await send(STATEFUL, "met", { seed: GOOD }, far));
  const later = await chunkOf(await send(STATEFUL, "met", { seed: GOOD }));
  expect([later.step, later.actions]).toEqual([0, clean.actions]);
  const frames = jpegs.flatMap((jpeg) => Array<Uint8Array>(4).fill(jpeg));
  const second = async (session_id: string, state: object) => {
    const body = requestBody({ model: STATEFUL, instruction: INSTRUCTION, frames, state });
    return await server.post(JSON.stringify({ ...body, session_id, expected_step: 1, seed: GOOD }));
  };
  await expectFailure(await second("met", far));
  const [one, other] = [await chunkOf(await second("met", STATE)), await chunkOf(await second("clean", STATE))];
  expect(one.actions).toEqual(other.actions);
});
