/** More robots than a replica holds: each finds its own memory, and notices nothing but time. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { chunkOf, Place, type Server } from "./program.ts";
import { episode, footage, framesAt, observe, ROBOTS } from "./robot.ts";

const [robot] = ROBOTS;
if (!robot) throw new Error("no robot");

/** A service with one place for a session, and what the memory of `parked` MiB holds beside it. */
async function serve(place: Place, parked: number): Promise<Server> {
  const config = join(place.dir, `${parked}.toml`);
  await Bun.write(config, `[robot."${robot?.model}"]\nslots = 1\ndevice = "cpu"\nparked_mib_max = ${parked}\n`);
  return await place.serve(["--config", config]);
}

test("two robots on one place get the chunks of one that is alone; a repeat is replayed while its session is parked; without parking the second is refused", async () => {
  await using place = await Place.make();
  const { cameras } = await footage(60);
  const steps = 6;
  const alone = await serve(place, 0);
  const expected = await episode(alone, robot, steps, cameras, { session_id: "alone" });
  const refused = await alone.post(JSON.stringify(observe(robot, 0, framesAt(robot, 0, cameras), { session_id: "b" })));
  expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining("no_replica_free")]);
  await alone.stop();

  const server = await serve(place, 4);
  const readyz: { placements?: { model: string; slots?: number; places?: number; slot_bytes?: number }[] } = JSON.parse(
    await (await fetch(`${server.ready.url}/readyz`)).text(),
  );
  const placed = readyz.placements?.find(({ model }) => model === robot.model);
  // What fits into 4 MiB beside the one place, at the largest.
  const parkable = Math.floor(2 ** 22 / (placed?.slot_bytes ?? 0));
  expect([placed?.places, placed?.slots]).toEqual([1, 1 + parkable]);
  expect(parkable).toBeGreaterThanOrEqual(1);

  const observation = (session_id: string, step: number) => {
    const extra = { session_id, expected_step: step, observation_id: `${session_id}-${step}` };
    return JSON.stringify(observe(robot, step, framesAt(robot, step, cameras), extra));
  };
  const names = ["one", "two"];
  for (let step = 0; step < steps; step += 1) {
    for (const name of names) {
      const response = await server.post(observation(name, step));
      const chunk = await chunkOf(response);
      expect([response.status, chunk.step, chunk.actions]).toEqual([200, step, expected[step]?.actions ?? []]);
    }
    // The first one is parked by now. Its repeat brings nothing back, and its next step is right all the same.
    const before = await server.metric("engine_sessions_brought_back_total");
    const repeat = await server.post(observation("one", step));
    expect([repeat.status, repeat.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    expect((await chunkOf(repeat)).actions).toEqual(expected[step]?.actions ?? []);
    expect(await server.metric("engine_sessions_brought_back_total")).toBe(before);
  }
  const held = (...names: string[]) => Promise.all(names.map((name) => server.metric(`engine_${name}`)));
  expect(await held("slots_held", "slots_parked", "sessions_parked_total")).toEqual([2, 1, 2 * steps - 1]);
  for (const name of names) {
    const path = `/v1/robot/sessions/${name}?model=${encodeURIComponent(robot.model)}`;
    const headers = { authorization: `Bearer ${server.ready.api_key}` };
    expect((await fetch(`${server.ready.url}${path}`, { method: "DELETE", headers })).status).toBe(204);
  }
  expect(await held("slots_held", "slots_parked", "memory_bytes_held", "parked_bytes_held")).toEqual([0, 0, 0, 0]);
  expect((await server.post(observation("one", steps))).status).toBe(410);
  await server.stop();
}, 120_000);
