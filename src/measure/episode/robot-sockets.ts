/** Robots with a socket each: each is one session and sends observation after observation. */
import { frameMessage, type SessionOpened } from "../../client/episode-messages.ts";
import { EpisodeSocket } from "../../client/episode-socket.ts";
import type { Service } from "../../client/http.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../sample/observation.ts";
import type { Scenes } from "../sample/scenes.ts";
import { COMMAND_HZ, type Connection, PERIOD_MS } from "./loop-robot.ts";

/** Rows of a chunk of the model that is measured. */
export const ROWS = 30;

interface OpenSocket {
  readonly socket: EpisodeSocket;
  readonly opened: SessionOpened;
}

/** Connects robots for the time of `work`, and ends every session afterwards. */
export async function withRobots<T>(
  service: Service,
  count: number,
  scenes: Scenes,
  work: (robots: readonly Connection[]) => Promise<T | Problem>,
): Promise<T | Problem> {
  const sockets = await openSessions(service, count);
  if (sockets instanceof Problem) return sockets;
  // Made once, before the measurement: on a robot the camera's driver makes its frames elsewhere.
  const messages = scenes.map((frames) => frames.map((jpeg, camera) => frameMessage(camera, jpeg)));
  const done = await work(sockets.map(({ socket, opened }, index) => new SocketRobot(socket, opened, messages, index)));
  const ends = await Promise.all(sockets.map(({ socket }) => socket.close()));
  return done instanceof Problem ? done : (ends.find((end) => end !== undefined) ?? done);
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

function isAsMeasured({ rows, dt, cameras }: SessionOpened): boolean {
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

  constructor(
    private readonly socket: EpisodeSocket,
    opened: SessionOpened,
    /** Each frame as a message. */
    private readonly messages: Scenes,
    index: number,
  ) {
    this.framesPerCamera = opened.next_frames_per_camera;
    this.step = opened.step;
    this.captured = index;
  }

  capture(): void {
    for (let frame = 0; frame < this.framesPerCamera; frame += 1) {
      const scene = present(this.messages[this.captured % this.messages.length], "at least one scene");
      for (const message of scene) this.socket.frame(message);
      this.captured += 1;
    }
  }

  async observe(): Promise<number | Problem> {
    const chunk = await this.socket.observe({ robot_state: SAMPLE_STATE, ...repeatable(this.step) });
    if (chunk instanceof Problem) return chunk;
    this.framesPerCamera = chunk.next_frames_per_camera;
    this.step += 1;
    return chunk.actions.length;
  }
}
