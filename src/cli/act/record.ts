/** `tendon act --record DIR`: the observation and its chunk as a run of one line. */

import type { ActionChunk } from "../../client/chunk.ts";
import { CAMERA_NAME } from "../../client/episode-log/format.ts";
import { EpisodeWriter } from "../../client/episode-log/write.ts";
import { Tape } from "../../measure/recording/tape.ts";
import { installedManifest } from "../../service/bundles.ts";
import { systemClock } from "../../std/clock.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import type { CameraFiles } from "./cameras.ts";
import type { Observation } from "./send.ts";

/** Sends an observation. */
type Send = (observation: Observation) => Promise<ActionChunk | Problem>;

/** A folder to record to, claimed before anything is sent and paid for. */
export async function claimRecording(
  folder: string | undefined,
  cameras: readonly CameraFiles[],
): Promise<EpisodeWriter | Problem | undefined> {
  if (folder === undefined) return undefined;
  const strange = cameras.find(({ camera }) => !CAMERA_NAME.test(camera));
  if (strange === undefined) return await EpisodeWriter.claim(folder);
  const name = printable(strange.camera);
  return new Problem(`the camera '${name}' cannot be recorded: its name is not one for a path`, EXIT.usage);
}

/** Sends the observation; what was sent and the chunk go to `writer`, which the caller ends. */
export async function sendRecorded(
  send: Send,
  observation: Observation,
  names: readonly string[],
  writer: EpisodeWriter | undefined,
): Promise<ActionChunk | Problem> {
  if (writer === undefined) return await send(observation);
  const { model, instruction, state } = observation;
  const manifest = await installedManifest(model);
  const tape = new Tape({ clock: systemClock, writer, model, instruction, cameras: names, manifest });
  const frames = new Map(names.map((name, index) => [name, observation.cameras[index] ?? []]));
  const sending = tape.sending({ state, frames, observationId: null });
  const chunk = await send(observation);
  const nowMs = systemClock.monotonicMs();
  // Nobody plays these rows; they would be due when they came.
  if (!(chunk instanceof Problem)) tape.answered(sending, chunk, nowMs, nowMs);
  return chunk;
}
