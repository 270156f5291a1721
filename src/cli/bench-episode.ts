/** `tendon bench episode`: does a robot's 30 Hz control loop always have a row to command? Each robot is a session on a socket. */
import { Problem } from "../error.ts";
import { present } from "../std/assert.ts";
import { systemClock } from "../std/clock.ts";
import { type BenchTarget, devicesOf, type Scenes, scenesFor, withService } from "./bench-service.ts";
import type { Service } from "./client.ts";
import { COMMAND_HZ, type Connection, type LoopFigures, PERIOD_MS, runLoop } from "./control-loop.ts";
import { descriptionOf } from "./description.ts";
import { EpisodeSocket, frameMessage, type Opened } from "./episode.ts";
import type { EpisodeMeasurement } from "./episode-report.ts";
import { printNote } from "./print.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "./sample.ts";

/** Rows of a chunk of the model that is measured; the control plays as many. */
const ROWS = 30;
const CHUNK_MS = ROWS * PERIOD_MS;
/** Connections, caches and the compilers of both sides warm up. */
const WARMUP_MS = 2_000;

interface EpisodePlan extends BenchTarget {
  readonly seconds: number;
}

/** All measurements of the plan, one after the other. */
export async function runEpisodeSuite(plan: EpisodePlan): Promise<EpisodeMeasurement[] | Problem> {
  const scenes = await scenesFor(plan);
  if (scenes instanceof Problem) return scenes;
  const measurements: EpisodeMeasurement[] = [];
  for (const device of devicesOf(plan)) {
    for (const robots of plan.robots) {
      const { seconds } = plan;
      await printNote(`measuring: device ${device}, robots ${robots}, ${seconds} s idle control, then ${seconds} s`);
      const done = await withService(plan, device, async (service) => {
        const description = await descriptionOf(service, SAMPLE_MODEL);
        if (description instanceof Problem) return description;
        const figures = await measureEpisodes({ service, robots, seconds, scenes });
        return figures instanceof Problem ? figures : { ...figures, reference: description.reference };
      });
      if (done instanceof Problem) return done;
      measurements.push({ model: SAMPLE_MODEL, device, robots, seconds, ...done });
    }
  }
  return measurements;
}

interface EpisodeLoad {
  readonly service: Service;
  readonly robots: number;
  readonly seconds: number;
  readonly scenes: Scenes;
}

/** The loop without any traffic first, then the same loop with it. */
export async function measureEpisodes(
  load: EpisodeLoad,
): Promise<{ control: LoopFigures; service: LoopFigures } | Problem> {
  const control = await runLoop({ ...loopOf(load), connections: idleConnections(load.robots) });
  if (control instanceof Problem) return control;
  const service = await driveEpisodes(load);
  return service instanceof Problem ? service : { control, service };
}

/** The robots' loop against the service, each on a socket of its own. */
export async function driveEpisodes(load: EpisodeLoad): Promise<LoopFigures | Problem> {
  const sockets = await openSessions(load.service, load.robots);
  if (sockets instanceof Problem) return sockets;
  // Ready messages, the same for all: a camera's driver makes its frames elsewhere.
  const scenes = load.scenes.map((frames) => frames.map((jpeg, camera) => frameMessage(camera, jpeg)));
  const connections = sockets.map(({ socket, opened }, index) => new RobotConnection(socket, opened, scenes, index));
  const figures = await runLoop({ ...loopOf(load), connections });
  const ends = await Promise.all(sockets.map(({ socket }) => socket.close()));
  return figures instanceof Problem ? figures : (ends.find((end) => end !== undefined) ?? figures);
}

function loopOf({ seconds }: EpisodeLoad) {
  return { clock: systemClock, spreadMs: CHUNK_MS, warmupMs: WARMUP_MS, measuredMs: seconds * 1000 };
}

/** Robots whose chunks are there at once, for nothing: what is late then is the machine's and the loop's own. */
function idleConnections(robots: number): Connection[] {
  return Array.from({ length: robots }, () => ({ capture: () => {}, observe: () => Promise.resolve(ROWS) }));
}

interface OpenSocket {
  readonly socket: EpisodeSocket;
  readonly opened: Opened;
}

/** Sockets with a session each; none is left open where one cannot be had. */
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

/** A robot's frames and observations, scene after scene. */
class RobotConnection implements Connection {
  private framesPerCamera: number;
  private captured: number;

  constructor(
    private readonly socket: EpisodeSocket,
    opened: Opened,
    /** As messages. */
    private readonly scenes: Scenes,
    index: number,
  ) {
    this.framesPerCamera = opened.framesPerCamera;
    this.captured = index;
  }

  capture(): void {
    for (let frame = 0; frame < this.framesPerCamera; frame += 1) {
      const scene = present(this.scenes[this.captured % this.scenes.length], "at least one scene");
      for (const message of scene) this.socket.frame(message);
      this.captured += 1;
    }
  }

  async observe(): Promise<number | Problem> {
    const chunk = await this.socket.observe({ robot_state: SAMPLE_STATE });
    if (chunk instanceof Problem) return chunk;
    this.framesPerCamera = chunk.next_frames_per_camera;
    return chunk.actions.length;
  }
}
