/** `timing_ms` of the whole program against the clock of its client: no more than the client waited, and nothing left out. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chunkOf, Place, type Server } from "./program.ts";
import { footage, framesAt, observe, ROBOTS } from "./robot.ts";

const MODEL = "vendorB/molmoact2:yam";
const ROBOT = ROBOTS.find(({ model }) => model === MODEL);
if (ROBOT === undefined) throw new Error("no such robot");

let place: Place;
let server: Server;
let frames: Uint8Array[];

beforeAll(async () => {
  const { cameras } = await footage(1);
  frames = framesAt(ROBOT, 0, cameras);
  place = await Place.make();
  // Without a model, what is beside it is all that there is to explain.
  await Bun.write(place.path("tendon.toml"), `[robot."${MODEL}"]\ndevice = "echo"\n`);
  server = await place.serve(["--config", "tendon.toml"]);
}, 60_000);

afterAll(async () => {
  await server.stop();
  await place[Symbol.asyncDispose]();
});

const sum = (values: readonly number[]) => values.reduce((all, ms) => all + ms, 0);

test("HTTP, eight robots at once: the stations and commit are within the client's time, and a good part of it", async () => {
  const waited: number[] = [];
  const told: number[] = [];
  const drive = async (session: string) => {
    for (let step = 0; step < 6; step += 1) {
      const body = JSON.stringify(observe(ROBOT, 0, frames, { session_id: session, observation_id: `${step}` }));
      const beforeMs = performance.now();
      const response = await server.post(body);
      const text = await response.text();
      const clientMs = performance.now() - beforeMs;
      expect(response.status).toBe(200);
      const stages = [...(response.headers.get("server-timing") ?? "").matchAll(/(\w+);dur=([\d.]+)/g)];
      expect(stages.map(([, name]) => name)).toEqual(["decode", "queue", "prefill", "denoise", "encode", "commit"]);
      const serviceMs = sum(stages.map(([, , ms]) => Number(ms)));
      const { timing_ms } = await chunkOf(new Response(text));
      expect(Object.values(timing_ms)).toEqual(stages.slice(0, 5).map(([, , ms]) => Number(ms)));
      expect(serviceMs).toBeLessThanOrEqual(clientMs);
      // The first connections are still being made.
      if (step === 0) continue;
      waited.push(clientMs);
      told.push(serviceMs);
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, index) => drive(`load-${index}`)));
  // The rest is transport, on a machine that both share. Native stations alone explain a thirtieth.
  expect(sum(told) / sum(waited)).toBeGreaterThan(0.25);
}, 60_000);
