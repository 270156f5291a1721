/** Whole episodes over HTTP on every model that ships. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testRequirement } from "../../src/config/environment.ts";
import { Place, type Server } from "./program.ts";
import { episode, footage, ROBOTS } from "./robot.ts";

const STEPS = 50;
/** Chunks after which the memory of an episode starts anew. */
const WINDOWS: Readonly<Record<string, number>> = { "vendorA/dreamzero-astra:yam": 4, "vendorF/picasso:yam": 6 };
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
    const window = WINDOWS[robot.model] ?? Number.NaN;
    test("an episode of 50 chunks runs through, with cache_reset at each window's end; the same inputs give bit-equal chunks in another session", async () => {
      const chunks = await episode(server, robot, STEPS, cameras, { session_id: "first" });
      expect(chunks.map(({ step }) => step)).toEqual(Array.from({ length: STEPS }, (_, step) => step));
      const begun = chunks.flatMap(({ reset, step }) => (reset ? [step] : []));
      expect(begun).toEqual(Array.from({ length: STEPS - 1 }, (_, at) => at + 1).filter((at) => at % window === 0));
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
