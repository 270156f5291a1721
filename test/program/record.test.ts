/** A robot's loop on record, as `tendon bench episode --record` writes it. */
import { expect, test } from "bun:test";
import { openEpisode } from "../../src/client/episode-log/read.ts";
import { Problem } from "../../src/std/problem.ts";
import { Place } from "./program.ts";

test("bench episode --record writes every observation of the first robot with its chunk; chunks follow each other without a gap", async () => {
  await using place = await Place.make();
  const flags = ["--seconds", "1", "--robots", "2", "--device", "echo", "--record", "run", "--json", "-"];
  const ended = await place.run(["bench", "episode", ...flags]);
  expect(ended).toMatchObject({ code: 0 });
  const log = await openEpisode(place.path("run"));
  if (log instanceof Problem) throw new Error(log.message);
  expect(log.head).toMatchObject({ model: "vendorB/molmoact2:yam", action: { space: "joint_position" } });
  const lines = await Array.fromAsync(log.observations);
  expect(lines.length).toBeGreaterThan(1);
  let due: number | undefined;
  for (const [step, line] of lines.entries()) {
    if (line instanceof Problem) throw new Error(line.message);
    const { chunk, frames = {} } = line;
    expect(line).toMatchObject({ step, observation_id: `${step}`, timing_ms: { denoise: expect.any(Number) } });
    expect(chunk?.actions).toHaveLength(30);
    for (const [camera, [path = ""]] of Object.entries(frames)) {
      expect(path).toBe(`frames/${camera}/${String(step).padStart(6, "0")}.jpg`);
      expect((await Bun.file(place.path(`run/${path}`)).bytes()).slice(0, 3)).toEqual(
        new Uint8Array([0xff, 0xd8, 0xff]),
      );
    }
    expect(Object.keys(frames)).toEqual(["top", "left", "right"]);
    // A busy machine may bring a chunk late, and then it starts at a later tick, but never before the rows of the last one are played.
    if (due !== undefined) expect(chunk?.start ?? 0).toBeGreaterThan(due - 1e-3);
    due = (chunk?.start ?? 0) + 1;
  }
});
