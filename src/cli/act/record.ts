/** `tendon act --record DIR`: the observation and its chunk as a run of one line. */
import { access, constants, mkdir, open, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ActionChunk } from "../../client/chunk.ts";
import {
  CAMERA_NAME,
  EPISODE_FILE,
  type EpisodeHead,
  type EpisodeObservation,
} from "../../client/episode-log/format.ts";
import type { RobotModel } from "../../client/robot-models.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import type { CameraFiles, Observation } from "./cameras.ts";

/** Makes the folder before anything is sent and paid for. One that holds anything is refused, because a run is one episode. */
export async function claimFolder(folder: string, cameras: readonly CameraFiles[]): Promise<Problem | undefined> {
  const strange = cameras.find(({ camera }) => !CAMERA_NAME.test(camera));
  if (strange !== undefined) {
    const name = printable(strange.camera);
    return new Problem(`the camera '${name}' cannot be recorded: its name is not one for a path`, EXIT.usage);
  }
  try {
    await mkdir(folder, { recursive: true });
    await access(folder, constants.W_OK);
    if ((await readdir(folder)).length === 0) return undefined;
    return new Problem(`'${folder}' is not empty; a run is recorded into a new or empty folder; name another one`);
  } catch (error) {
    return new Problem(
      `cannot record to '${folder}': ${(error as Error).message}; name a folder that you may write to`,
    );
  }
}

export interface Recording {
  readonly observation: Observation;
  /** Names in the order of the observation's frames. */
  readonly cameras: readonly string[];
  readonly chunk: ActionChunk;
  /** Names of the values of a row. */
  readonly columns: readonly string[];
  readonly model: RobotModel;
  /** Unix milliseconds at which the observation was sent. */
  readonly sentMs: number;
  readonly latencyMs: number;
}

/** Writes frames as they were sent to `frames/CAMERA/NNNNNN.jpg`, and then the log that names them. */
export async function writeRun(folder: string, recorded: Recording): Promise<Problem | undefined> {
  const { observation, cameras, chunk, sentMs } = recorded;
  const frames = Object.fromEntries(
    cameras.map((name, camera) => [name, (observation.cameras[camera] ?? []).map((_, frame) => pathOf(name, frame))]),
  );
  const state = recordedState(observation.state, recorded.model);
  const head: EpisodeHead = {
    ...{ type: "episode", version: 1, model: observation.model, session_id: chunk.session_id },
    ...{ instruction: observation.instruction, started_at: sentMs / 1000 },
    cameras: cameras.map((name) => ({ name })),
    state: { space: state.space, names: state.names },
    action: { space: chunk.action_space, names: [...recorded.columns], dt: chunk.dt },
  };
  const latencyMs = Math.round(recorded.latencyMs * 1000) / 1000;
  const line: EpisodeObservation = {
    ...{ type: "observation", t: 0, step: chunk.step, observation_id: null, state: state.values, frames },
    // The rows are not played; they would be due when they came.
    chunk: { id: null, start: latencyMs / 1000, actions: chunk.actions },
    ...{ latency_ms: latencyMs, timing_ms: chunk.timing_ms },
  };
  try {
    for (const [camera, jpegs] of observation.cameras.entries()) {
      const name = cameras[camera] ?? "";
      await mkdir(join(folder, dirname(pathOf(name, 0))), { recursive: true });
      for (const [frame, jpeg] of jpegs.entries()) await writeFile(join(folder, pathOf(name, frame)), jpeg);
    }
    const log = await open(join(folder, EPISODE_FILE), "wx");
    try {
      await log.writeFile(`${JSON.stringify(head)}\n${JSON.stringify(line)}\n`);
      await log.datasync();
    } finally {
      await log.close();
    }
    return undefined;
  } catch (error) {
    return new Problem(`the recording in '${folder}' is not whole: ${(error as Error).message}`);
  }
}

function pathOf(camera: string, frame: number): string {
  return `frames/${camera}/${String(frame).padStart(6, "0")}.jpg`;
}

const SPACES = { joint: "joint_position", cartesian: "cartesian_position", vector: "vector" } as const;

/** The values that the model has read of `robot_state`, by their names. The service has accepted them. */
function recordedState(state: object, model: RobotModel) {
  const arrays = new Map(Object.entries(state).filter((entry): entry is [string, number[]] => isNumbers(entry[1])));
  const values = model.state_columns.map(({ from, index }) => arrays.get(from)?.[index] ?? 0);
  return { space: SPACES[model.state], names: model.state_columns.map(({ name }) => name), values };
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((one) => typeof one === "number");
}
