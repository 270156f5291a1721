/**
 * How long does an observation wait for its model's start?
 *
 * One robot sends three drawn frames of 640×360 per observation to the echo device. Each round has three arms, each with a fresh
 * service. `early`: a socket, the frames sent some milliseconds before the observation, as cameras do. `together`: a socket, the
 * frames right before it. `http`: over HTTP. Every observation has its observation_id and expected_step, as the
 * documented clients send them. The service's clock, `tendon_start_ms`, counts from the arrival of the observation to the model's
 * start. The client's counts from sending the observation to its chunk, which includes the model, the durable record and the reply.
 *
 * The robot sends again as soon as it has its chunk, so caches and cores are warm. The proof `episodes` has 64 robots at 30 Hz.
 */
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { type Summary, summary } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { onServer } from "./measured-server.ts";
import { FRAMES_SENT, onSocket, overHttp } from "./one-robot.ts";
import { type Figure, judged, medianOver, type Proof } from "./proof.ts";

/** The start times are those of the last 1024 observations: as many as are measured after the warm-up. */
const SIZES = {
  small: { rounds: 1, chunks: 20, warmup: 5 },
  full: { rounds: 5, chunks: 1024, warmup: 200 },
} as const;
type Plan = (typeof SIZES)["small" | "full"];

/** Asked of sockets whose frames come before, milliseconds. */
const START_P50_MS = 1;
const START_P99_MS = 3;

const ARMS = {
  ...FRAMES_SENT,
  http: "HTTP",
} as const;
type Arm = keyof typeof ARMS;
const ARM_NAMES = ["early", "together", "http"] as const;

interface Times {
  /** Measured by the service's clock. */
  readonly start: Summary;
  /** Measured by the client's clock. */
  readonly client: Summary;
}

export const arrival: Proof = {
  name: "arrival",
  question: "How long does an observation wait for its model's start, on a socket and over HTTP?",
  async run(size) {
    const plan = SIZES[size];
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    const rounds: Record<Arm, Times[]> = { early: [], together: [], http: [] };
    for (let round = 0; round < plan.rounds; round += 1) {
      for (const arm of ARM_NAMES) {
        const one = await measured(arm, plan, frames);
        if (one instanceof Problem) return one;
        rounds[arm].push(one);
      }
    }
    return judged(ARM_NAMES.flatMap((arm) => figures(arm, rounds[arm])));
  },
};

function figures(arm: Arm, rounds: readonly Times[]): Figure[] {
  const name = `${ARMS[arm]}: observation to `;
  const figure = medianOver(rounds, name);
  const [starts, chunks] = ["model's start, service's clock,", "chunk, client's clock,"];
  const most = (limit: number): Partial<Figure> => (arm === "early" ? { limit } : {});
  return [
    figure(`${starts} p50`, "ms", ({ start }) => start.p50, most(START_P50_MS)),
    figure(`${starts} p99`, "ms", ({ start }) => start.p99, most(START_P99_MS)),
    { measure: `${name}${starts} greatest`, value: Math.max(...rounds.map(({ start }) => start.max)), unit: "ms" },
    figure(`${chunks} p50`, "ms", ({ client }) => client.p50),
    figure(`${chunks} p99`, "ms", ({ client }) => client.p99),
  ];
}

async function measured(arm: Arm, plan: Plan, frames: Uint8Array[]): Promise<Times | Problem> {
  return await onServer("echo", async (server) => {
    const { service } = server.child;
    const robot = arm === "http" ? overHttp(service, [frames]) : await onSocket(service, frames, arm);
    if (robot instanceof Problem) return robot;
    const warm = await robot.drive(plan.warmup);
    if (warm instanceof Problem) return warm;
    const client = await robot.drive(plan.chunks);
    await robot.leave();
    if (client instanceof Problem) return client;
    const start = await server.modelStart(arm === "http" ? "chat" : "episode");
    return start instanceof Problem ? start : { start, client: summary(client) };
  });
}
