/** Whole episodes over HTTP on every model that ships. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testRequirement } from "../../src/config/environment.ts";
import { Place, type Server } from "./program.ts";
import { episode, footage, framesAt, observe, ROBOTS } from "./robot.ts";

const STEPS = 50;
let place: Place;
let server: Server;
let cameras: Uint8Array[][];
let real: boolean;

beforeAll(async () => {
  ({ cameras, real } = await footage(200));
  place = await Place.make();
  server = await place.serve();
}, 60_000);

afterAll(async () => {
  await server.stop();
  await place[Symbol.asyncDispose]();
});

test("episodes run on the frames of the shared videos where everything is required", () => {
  expect(real || testRequirement() === "none").toBe(true);
});

for (const robot of ROBOTS) {
  describe(robot.model, () => {
    test("an episode of 50 chunks runs through, and the same inputs give bit-equal chunks in another session", async () => {
      const chunks = await episode(server, robot, STEPS, cameras, { session_id: "first" });
      expect(chunks.map(({ step }) => step)).toEqual(Array.from({ length: STEPS }, (_, step) => step));
      for (const { actions, next } of chunks) {
        expect([actions.length, next]).toEqual([robot.rows, robot.later]);
        for (const row of actions) expect(row.length === robot.columns && row.every(Number.isFinite)).toBe(true);
      }
      const again = await episode(server, robot, STEPS, cameras, { session_id: "second" });
      expect(again).toEqual(chunks);
    }, 120_000);

    test("another seed, another order of frames or cameras give other chunks", async () => {
      const steps = 3;
      const run = async (session_id: string, own: readonly Uint8Array[][], extra: object = {}) =>
        JSON.stringify(await episode(server, robot, steps, own, { session_id, ...extra }));
      const runs = [
        await run("a", cameras),
        await run("b", cameras, { seed: 1 }),
        await run("c", cameras.toReversed()),
        await run(
          "d",
          cameras.map((frames) => frames.toReversed()),
        ),
      ];
      expect(new Set(runs).size).toBe(4);
      expect(await run("e", cameras)).toBe(runs[0] ?? "");
    }, 60_000);
  });
}

test("the chunk has cache_reset where the window starts anew: dreamzero at 4, 8, …, picasso at 6, 12, …", async () => {
  const resets = async (index: number) => {
    const robot = ROBOTS[index];
    if (!robot) throw new Error("no such robot");
    const chunks = await episode(server, robot, 14, cameras, { session_id: `resets-${index}` });
    return chunks.flatMap(({ reset }, step) => (reset ? [step] : []));
  };
  expect([await resets(0), await resets(1), await resets(2)]).toEqual([[4, 8, 12], [6, 12], []]);
});

test("an ended session gives its memory back at once", async () => {
  const [robot] = ROBOTS;
  if (!robot) throw new Error("no robot");
  const held = async () => {
    const metrics = await (await fetch(`${server.ready.ops_url}/metrics`)).text();
    return ["slots_held", "memory_bytes_held"].map((name) =>
      Number(new RegExp(`^tendon_engine_${name} (\\d+)$`, "m").exec(metrics)?.[1]),
    );
  };
  const before = await held();
  await episode(server, robot, 2, cameras, { session_id: "ending" });
  const during = await held();
  const path = `/v1/robot/sessions/ending?model=${encodeURIComponent(robot.model)}`;
  const headers = { authorization: `Bearer ${server.ready.api_key}` };
  expect((await fetch(`${server.ready.url}${path}`, { method: "DELETE", headers })).status).toBe(204);
  expect([during[0], await held()]).toEqual([(before[0] ?? 0) + 1, before]);
  const next = observe(robot, 2, framesAt(robot, 2, cameras), { session_id: "ending" });
  expect((await server.post(JSON.stringify(next))).status).toBe(410);
});
