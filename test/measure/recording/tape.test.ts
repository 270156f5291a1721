import { expect, test } from "bun:test";
import type { ActionChunk } from "../../../src/client/chunk.ts";
import { openEpisode } from "../../../src/client/episode-log/read.ts";
import { EpisodeWriter } from "../../../src/client/episode-log/write.ts";
import { recordedAction, recordedState } from "../../../src/measure/recording/columns.ts";
import { Tape } from "../../../src/measure/recording/tape.ts";
import { SAMPLE_MODEL, SAMPLE_STATE } from "../../../src/measure/sample/observation.ts";
import { installedManifest } from "../../../src/service/bundles.ts";
import { Problem } from "../../../src/std/problem.ts";
import { Folder, JPEG } from "../../client/episode-log/sample-run.ts";
import { CHUNK } from "../../client/sample-chunk.ts";
import { FakeClock } from "../../std/fake-clock.ts";

const chunk = (step: number): ActionChunk => ({ ...CHUNK, step });

test("a tape has each observation at its time, with latency, the service's times and when its rows are due", async () => {
  await using folder = await Folder.make();
  const clock = new FakeClock();
  const writer = await EpisodeWriter.claim(folder.at("run"));
  if (writer instanceof Problem) throw new Error(writer.message);
  const tape = new Tape({ clock, writer, model: "m", instruction: "go", cameras: ["top"], manifest: undefined });
  const sending = (id: string) =>
    tape.sending({ state: { joint_position: [1, 2] }, frames: new Map([["top", [JPEG]]]), observationId: id });
  clock.advance(50);
  // Nobody knows yet what an action is, so this one is not in the log.
  tape.refused(sending("a"), new Problem("session_busy: later"));
  const first = sending("b");
  clock.advance(20);
  tape.answered(first, chunk(7), clock.monotonicMs(), 100);
  clock.advance(500);
  tape.refused(sending("c"), new Problem("model_failure: no numbers"));
  tape.refused(sending("d"), new Problem("the connection broke off"));
  expect(await writer.end()).toBeUndefined();
  const log = await openEpisode(folder.at("run"));
  if (log instanceof Problem) throw new Error(log.message);
  expect(log.head).toMatchObject({ started_at: 1_700_000_000, session_id: "anon-1", action: { dt: CHUNK.dt } });
  expect(await Array.fromAsync(log.observations)).toMatchObject([
    { t: 0.05, step: 7, observation_id: "b", chunk: { start: 0.1 }, latency_ms: 20, timing_ms: CHUNK.timing_ms },
    { t: 0.57, step: 8, observation_id: "c", chunk: null, latency_ms: null, error: { code: "model_failure" } },
    { t: 0.57, step: 9, observation_id: "d", chunk: null, error: { code: "failed" } },
  ]);
});

test("where the bundle is installed the state is the model's vector, by its names", async () => {
  const manifest = await installedManifest(SAMPLE_MODEL);
  const { about, values } = recordedState(SAMPLE_STATE, manifest);
  expect(about.space).toBe("joint_position");
  expect(about.names).toEqual(manifest?.state.columns.map(({ name }) => name) ?? []);
  expect(values[about.names.indexOf("left_gripper")]).toBe(SAMPLE_STATE.gripper_position[0] ?? Number.NaN);
  expect(recordedAction(chunk(0), manifest).names).toEqual(manifest?.action.columns.map(({ name }) => name) ?? []);
  // A state that is not the model's is told as it was sent.
  const other = recordedState({ joint_position: [1], cartesian_position: [2, 3], note: "x" }, manifest);
  expect(other).toEqual({
    about: { space: "cartesian_position", names: ["joint_position_0", "cartesian_position_0", "cartesian_position_1"] },
    values: [1, 2, 3],
  });
});
