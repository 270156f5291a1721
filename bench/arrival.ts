/**
 * How long does an observation wait for its model's start?
 *
 * One robot, three drawn frames of 640×360 per observation, the echo device. In each round three arms, each with a fresh
 * service: on a socket with the frames sent some milliseconds before the observation, as cameras do (early); on a socket with the
 * frames right before it (together); over HTTP (http). Every observation has its observation_id and expected_step, as the
 * documented clients send them. Two clocks: the service's `tendon_start_ms`, from the arrival of the observation to the model's
 * start; the client's, from sending the observation to its chunk, which includes the model, the durable record and the reply.
 *
 * The robot sends again as soon as it has its chunk, so caches and cores are warm. The proof `episodes` has 64 robots at 30 Hz.
 */
import type { Service } from "../src/client/http.ts";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { median, type Summary, summary } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { onServer } from "./measured-server.ts";
import { type Figure, judged, type Proof } from "./proof.ts";
import { FRAMES_SENT, type FramesSent, SocketTurns } from "./socket-turns.ts";

/** The start times are those of the last 1024 observations: as many as are measured after the warm-up. */
const SIZES = {
  small: { rounds: 1, chunks: 20, warmup: 5 },
  full: { rounds: 5, chunks: 1024, warmup: 200 },
} as const;
type Plan = (typeof SIZES)["small" | "full"];

/** Asked for, milliseconds. */
const START_P50_MS = 1;
const START_P99_MS = 3;

const ARMS = {
  ...FRAMES_SENT,
  http: "HTTP",
} as const;
type Arm = keyof typeof ARMS;
const ARM_NAMES = ["early", "together", "http"] as const;

interface Told {
  /** By the service's clock. */
  readonly start: Summary;
  /** By the client's clock. */
  readonly client: Summary;
}

export const arrival: Proof = {
  name: "arrival",
  question: "How long does an observation wait for its model's start, on a socket and over HTTP?",
  async run(size) {
    const plan = SIZES[size];
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    const told: Record<Arm, Told[]> = { early: [], together: [], http: [] };
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const arm of ARM_NAMES) {
        const one = await measured(arm, plan, frames);
        if (one instanceof Problem) return one;
        told[arm].push(one);
      }
    }
    const rows = ARM_NAMES.flatMap((arm) => figures(arm, told[arm], arm === "early"));
    return judged(rows);
  },
};

function figures(arm: Arm, told: readonly Told[], isJudged: boolean): Figure[] {
  const row = (measure: string, values: readonly number[], limit?: number): Figure => ({
    ...{ measure: `${ARMS[arm]}: observation to ${measure}`, value: median(values), unit: "ms" },
    ...(isJudged && limit !== undefined ? { limit } : {}),
  });
  const [start, client] = [told.map((one) => one.start), told.map((one) => one.client)];
  const [starts, chunks] = ["model's start, service's clock,", "chunk, client's clock,"];
  const p50 = ({ p50 }: Summary) => p50;
  const p99 = ({ p99 }: Summary) => p99;
  return [
    row(`${starts} p50`, start.map(p50), START_P50_MS),
    row(`${starts} p99`, start.map(p99), START_P99_MS),
    row(`${starts} greatest`, [Math.max(...start.map(({ max }) => max))]),
    row(`${chunks} p50`, client.map(p50)),
    row(`${chunks} p99`, client.map(p99)),
  ];
}

async function measured(arm: Arm, plan: Plan, frames: Uint8Array[]): Promise<Told | Problem> {
  return await onServer("echo", async (server) => {
    const { service } = server.child;
    const client = arm === "http" ? await overHttp(service, plan, frames) : await onSocket(service, plan, frames, arm);
    if (client instanceof Problem) return client;
    const start = await server.modelStart(arm === "http" ? "chat" : "episode");
    return start instanceof Problem ? start : { start, client: summary(client) };
  });
}

async function overHttp(service: Service, plan: Plan, frames: Uint8Array[]): Promise<readonly number[] | Problem> {
  const done = await driveChunks({
    service,
    robots: 1,
    chunks: plan.chunks,
    warmup: plan.warmup,
    scenes: [frames],
    sessionPrefix: "arrival",
    repeatable: true,
  });
  return done instanceof Problem ? done : done.ms.client;
}

/** Milliseconds from each observation to its chunk. */
async function onSocket(
  service: Service,
  plan: Plan,
  frames: readonly Uint8Array[],
  arm: FramesSent,
): Promise<readonly number[] | Problem> {
  const robot = await SocketTurns.open(service, frames);
  if (robot instanceof Problem) return robot;
  const warm = await robot.drive(plan.warmup, arm);
  if (warm instanceof Problem) return warm;
  const times = await robot.drive(plan.chunks, arm);
  await robot.close();
  return times;
}
