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
import { startServer } from "./measured-server.ts";
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

function figures(arm: Arm, told: readonly Told[], judged: boolean): Figure[] {
  const of = (read: (one: Told) => number) => median(told.map(read));
  const row = (measure: string, value: number, limit?: number): Figure => ({
    measure: `${ARMS[arm]}: ${measure}`,
    value,
    unit: "ms",
    ...(judged && limit !== undefined ? { limit } : {}),
  });
  return [
    row(
      "observation to model's start, service's clock, p50",
      of(({ start }) => start.p50),
      START_P50_MS,
    ),
    row(
      "observation to model's start, service's clock, p99",
      of(({ start }) => start.p99),
      START_P99_MS,
    ),
    row("observation to model's start, service's clock, greatest", Math.max(...told.map(({ start }) => start.max))),
    row(
      "observation to chunk, client's clock, p50",
      of(({ client }) => client.p50),
    ),
    row(
      "observation to chunk, client's clock, p99",
      of(({ client }) => client.p99),
    ),
  ];
}

async function measured(arm: Arm, plan: Plan, frames: Uint8Array[]): Promise<Told | Problem> {
  const server = await startServer("echo");
  if (server instanceof Problem) return server;
  const { child } = server;
  try {
    const client =
      arm === "http" ? await overHttp(child.service, plan, frames) : await onSocket(child.service, plan, frames, arm);
    if (client instanceof Problem) return await child.explain(client);
    const start = await server.modelStart(arm === "http" ? "chat" : "episode");
    return start instanceof Problem ? start : { start, client: summary(client) };
  } finally {
    await child.stop();
  }
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
