/**
 * Does a robot feel 200 live streams of a language model on its node?
 *
 * Each round has one fresh service, its ledger on (SQLite), models that answer zeros at once (echo), and a provider in a process of its
 * own: the robot alone (A), alone again (A'), beside the streams (B), each stream 20 tokens a second. Provider, reader of the
 * streams, robot and service share the machine's cores; so a control (C) has the streams go from provider to reader directly, past
 * the service: what B is above C is the service's own doing.
 */
import { join } from "node:path";
import { childEnvironment } from "../src/config/environment.ts";
import { firstLine } from "../src/measure/child.ts";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { median, type Summary, summary } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { table } from "../src/std/text-table.ts";
import { type Setup, STREAM_ID, setUp } from "./llm/setup.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const SIZES = {
  small: { rounds: 1, chunks: 20, warmup: 5, streams: 5, settleMs: 100 },
  full: { rounds: 5, chunks: 2000, warmup: 300, streams: 200, settleMs: 1000 },
} as const;
type Plan = (typeof SIZES)[keyof typeof SIZES];

/** Of one stream's tokens: 20 a second. */
const GAP_MS = 50;
/** Asked for: the robot's p99 beside the streams, of that alone; more where two runs alone differ by more. */
const RATIO_MAX = 1.1;

const ARMS = ["A alone", "A' alone again", "B beside streams", "C beside streams past the service"] as const;
type Arm = (typeof ARMS)[number];
type Round = Readonly<Record<Arm, Summary>>;

export const llmBeside: Proof = {
  name: "llm-beside",
  question: "Does a robot feel 200 live streams of a language model on its node?",
  async run(size) {
    const plan = SIZES[size];
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    const rounds: Round[] = [];
    for (let at = 0; at < plan.rounds; at += 1) {
      const round = await measuredRound(plan, frames);
      if (round instanceof Problem) return round;
      rounds.push(round);
    }
    return judged(figures(rounds), { above: `${roundsText(rounds)}\n` });
  },
};

async function measuredRound(plan: Plan, frames: Uint8Array[]): Promise<Round | Problem> {
  const setup = await setUp();
  if (setup instanceof Problem) return setup;
  try {
    const found = new Map<Arm, Summary>();
    const warm = await drive(setup, plan.warmup, "warm", frames);
    if (warm instanceof Problem) return warm;
    for (const arm of ARMS) {
      const stop = await streams(arm, setup, plan);
      if (stop instanceof Problem) return stop;
      await Bun.sleep(plan.settleMs);
      const driven = await drive(setup, plan.chunks, `arm-${found.size}`, frames);
      await stop();
      if (driven instanceof Problem) return driven;
      found.set(arm, driven);
    }
    return Object.fromEntries(found) as Round;
  } finally {
    await setup[Symbol.asyncDispose]();
  }
}

/** Opens the streams of an arm; what comes back ends them. */
async function streams(arm: Arm, { child, providerUrl }: Setup, plan: Plan): Promise<(() => Promise<void>) | Problem> {
  if (arm === "A alone" || arm === "A' alone again") return async () => {};
  const { url, apiKey } = child.service;
  const target = arm === "B beside streams" ? [url, apiKey, STREAM_ID] : [providerUrl, "direct", ""];
  const words = [join(import.meta.dir, "llm/streams-child.ts"), ...target, String(plan.streams), String(GAP_MS)];
  const reader = Bun.spawn([process.execPath, ...words], { stdin: "pipe", stdout: "pipe", env: childEnvironment({}) });
  const said = await firstLine(reader.stdout);
  const stop = async () => {
    reader.kill();
    await reader.exited;
  };
  if (said === "open") return stop;
  await stop();
  return new Problem(`the streams of "${arm}" were not opened`);
}

async function drive(
  { child }: Setup,
  chunks: number,
  sessionPrefix: string,
  frames: Uint8Array[],
): Promise<Summary | Problem> {
  const driven = await driveChunks({
    service: child.service,
    robots: 1,
    chunks,
    warmup: 0,
    scenes: [frames],
    sessionPrefix,
  });
  return driven instanceof Problem ? driven : summary(driven.ms.client);
}

function figures(rounds: readonly Round[]): Figure[] {
  const middle = (of: (round: Round) => number): number => median(rounds.map(of));
  const alone = (round: Round): number => (round["A alone"].p99 + round["A' alone again"].p99) / 2;
  const spread = middle((round) => {
    const ratio = round["A' alone again"].p99 / round["A alone"].p99;
    return Math.max(ratio, 1 / ratio);
  });
  const limit = Math.max(RATIO_MAX, Math.round(spread * 1000) / 1000);
  const times = ARMS.flatMap((arm) =>
    (["p50", "p99"] as const).map((order) => ({
      measure: `${arm}, chunk ${order}`,
      value: middle((round) => round[arm][order]),
      unit: "ms",
    })),
  );
  return [
    ...times,
    { measure: "p99, A and A' apart", value: spread, unit: "1" },
    { measure: "p99, B / A", value: middle((round) => round["B beside streams"].p99 / alone(round)), unit: "1", limit },
    {
      measure: "p99, C / A: the same streams past the service",
      value: middle((round) => round["C beside streams past the service"].p99 / alone(round)),
      unit: "1",
    },
  ];
}

function roundsText(rounds: readonly Round[]): string {
  const lines = rounds.flatMap((round, index) =>
    ARMS.map((arm) => {
      const { p50, p90, p99 } = round[arm];
      return [String(index + 1), arm, p50.toFixed(3), p90.toFixed(3), p99.toFixed(3)];
    }),
  );
  return table(
    [["round", "robot", "p50 ms", "p90 ms", "p99 ms"], ...lines],
    ["left", "left", "right", "right", "right"],
  );
}
