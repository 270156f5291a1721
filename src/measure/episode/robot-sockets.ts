/** Robots on sockets of their own: each is one session and sends observation after observation. */

import type { CameraFrames, EpisodeWriter } from "../../client/episode-log/write.ts";
import { frameMessage, type Opened } from "../../client/episode-messages.ts";
import { EpisodeSocket } from "../../client/episode-socket.ts";
import type { Service } from "../../client/http.ts";
import { installedManifest } from "../../service/bundles.ts";
import { present } from "../../std/assert.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { Tape } from "../recording/tape.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../sample/observation.ts";
import type { Scenes } from "../sample/scenes.ts";
import { COMMAND_HZ, type Connection, PERIOD_MS } from "./loop-robot.ts";

/** Rows of a chunk of the model that is measured. */
export const ROWS = 30;

interface OpenSocket {
  readonly socket: EpisodeSocket;
  readonly opened: Opened;
}

/** Connects robots for the time of `work`, and ends every session afterwards. The first robot's episode goes to `recording`. */
export async function withRobots<T>(
  service: Service,
  count: number,
  scenes: Scenes,
  work: (robots: readonly Connection[]) => Promise<T | Problem>,
  recording?: EpisodeWriter,
): Promise<T | Problem> {
  const sockets = await openSessions(service, count);
  if (sockets instanceof Problem) return sockets;
  // Made once, before the measurement: on a robot the camera's driver makes its frames elsewhere.
  const messages = scenes.map((frames) => frames.map((jpeg, camera) => frameMessage(camera, jpeg)));
  const tape = recording && (await tapeOf(recording, sockets[0]));
  const done = await work(
    sockets.map(
      ({ socket, opened }, index) => new SocketRobot(socket, opened, messages, index, index === 0 ? tape : undefined),
    ),
  );
  const ends = await Promise.all(sockets.map(({ socket }) => socket.close()));
  return done instanceof Problem ? done : (ends.find((end) => end !== undefined) ?? done);
}

async function tapeOf(writer: EpisodeWriter, first: OpenSocket | undefined): Promise<Tape> {
  const cameras = first?.opened.cameras ?? [];
  const manifest = await installedManifest(SAMPLE_MODEL);
  return new Tape({
    clock: systemClock,
    writer,
    model: SAMPLE_MODEL,
    instruction: SAMPLE_INSTRUCTION,
    cameras,
    manifest,
  });
}

/** Sockets with a session each. If one cannot be opened, all are closed. */
export async function openSessions(service: Service, count: number): Promise<OpenSocket[] | Problem> {
  const outcomes = await Promise.all(Array.from({ length: count }, () => openSession(service)));
  const problem = outcomes.find((one) => one instanceof Problem);
  const sockets = outcomes.filter((one): one is OpenSocket => !(one instanceof Problem));
  if (problem === undefined) return sockets;
  await Promise.all(sockets.map(({ socket }) => socket.close()));
  return problem;
}

async function openSession(service: Service): Promise<OpenSocket | Problem> {
  const socket = await EpisodeSocket.connect(service);
  if (socket instanceof Problem) return socket;
  const opened = await socket.open({ model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, format: "f32" });
  if (!(opened instanceof Problem) && isAsMeasured(opened)) return { socket, opened };
  await socket.leave();
  if (opened instanceof Problem) return opened;
  return new Problem(
    `${SAMPLE_MODEL} at ${service.url} has ${opened.rows} rows, one every ${opened.dt} s, and ${opened.cameras.length} cameras; ` +
      `this measurement is for ${ROWS} rows at ${COMMAND_HZ} Hz and 3 cameras`,
  );
}

function isAsMeasured({ rows, dt, cameras }: Opened): boolean {
  return rows === ROWS && Math.abs(dt * 1000 - PERIOD_MS) < 1e-6 && cameras.length === 3;
}

/** The fields with which an observation may be sent again after a broken connection, as the documented clients send them. */
export function repeatable(step: number) {
  return { observation_id: String(step), expected_step: step };
}

/** A robot's frames and observations, scene after scene. */
class SocketRobot implements Connection {
  private framesPerCamera: number;
  private captured: number;
  private step: number;
  /** Since the last observation. */
  private readonly scenes: Scenes[number][] = [];
  /** Writes the last answer once it is known when its rows are due. */
  private record: ((firstDueMs: number) => void) | undefined;

  constructor(
    private readonly socket: EpisodeSocket,
    private readonly opened: Opened,
    /** Each frame as a message. */
    private readonly messages: Scenes,
    index: number,
    private readonly tape: Tape | undefined,
  ) {
    this.framesPerCamera = opened.next_frames_per_camera;
    this.step = opened.step;
    this.captured = index;
  }

  capture(): void {
    for (let frame = 0; frame < this.framesPerCamera; frame += 1) {
      const scene = present(this.messages[this.captured % this.messages.length], "at least one scene");
      for (const message of scene) this.socket.frame(message);
      if (this.tape !== undefined) this.scenes.push(scene);
      this.captured += 1;
    }
  }

  async observe(): Promise<number | Problem> {
    const { tape } = this;
    const repeat = repeatable(this.step);
    const sending = tape?.sending({ state: SAMPLE_STATE, frames: this.frames(), observationId: repeat.observation_id });
    const chunk = await this.socket.observe({ robot_state: SAMPLE_STATE, ...repeat });
    if (chunk instanceof Problem) {
      if (sending !== undefined) tape?.refused(sending, chunk);
      return chunk;
    }
    const arrivedMs = systemClock.monotonicMs();
    this.record = sending && ((firstDueMs) => tape?.answered(sending, chunk, arrivedMs, firstDueMs));
    this.framesPerCamera = chunk.next_frames_per_camera;
    this.step += 1;
    return chunk.actions.length;
  }

  queued(firstDueMs: number): void {
    this.record?.(firstDueMs);
  }

  /** The JPEG files that were sent since the last observation, by camera: a message is the camera's index and the file. */
  private frames(): CameraFrames {
    const scenes = this.scenes.splice(0);
    return new Map(
      this.opened.cameras.map((name, camera) => [
        name,
        scenes.map((scene) => present(scene[camera], "a frame of every camera").subarray(1)),
      ]),
    );
  }
}
