/** `timing_ms` of the whole program against the clock of its client: no more than the client waited, and nothing left out. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { frameMessage } from "../../src/client/episode-messages.ts";
import { EpisodeSocket } from "../../src/client/episode-socket.ts";
import { Problem } from "../../src/std/problem.ts";
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

test("a socket, frames decoded before their observation: decode is 0, and the stations are within the client's time", async () => {
  const socket = await EpisodeSocket.connect({ url: server.ready.url, apiKey: server.ready.api_key });
  if (socket instanceof Problem) throw new Error(socket.message);
  const opened = await socket.open({ model: MODEL, instruction: "fold the towel", format: "json" });
  if (opened instanceof Problem) throw new Error(opened.message);
  const { robot_state } = observe(ROBOT, 0, frames) as { robot_state: object };
  for (let step = 0; step < 10; step += 1) {
    const before = await decoded();
    for (const [camera, jpeg] of frames.entries()) socket.frame(frameMessage(camera, jpeg));
    while ((await decoded()) < before + frames.length) await Bun.sleep(1);
    const beforeMs = performance.now();
    const chunk = await socket.observe({ robot_state, observation_id: `${step}`, expected_step: step });
    const clientMs = performance.now() - beforeMs;
    if (chunk instanceof Problem) throw new Error(chunk.message);
    expect(chunk.timing_ms.decode).toBe(0);
    expect(sum(Object.values(chunk.timing_ms))).toBeLessThanOrEqual(clientMs);
  }
  expect(await socket.close()).toBeUndefined();
}, 60_000);

/** Frames that the service has decoded so far. */
async function decoded(): Promise<number> {
  const metrics = await (await fetch(`${server.ready.ops_url}/metrics`)).text();
  return Number(/^tendon_engine_frames_decoded_total (\d+)$/m.exec(metrics)?.[1]);
}
