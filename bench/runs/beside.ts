/**
 * Does a robot feel uploads to its node?
 *
 * Each round has one fresh service, its ledger on (SQLite), models that answer zeros at once (echo): the robot alone (A), alone again
 * (A'), beside an upload of 20 MB a second (B), beside four uploads as fast as they go (C). Service, robot and uploads share the
 * machine's cores and its disk; so two controls have the same bytes go to a server that only hashes and writes them (D, E): what B is
 * above D is the service's own doing.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { childEnvironment } from "../../src/config/environment.ts";
import { type Child, firstLine, startChild } from "../../src/measure/child.ts";
import { driveChunks } from "../../src/measure/chunk/load.ts";
import { sampleFrames } from "../../src/measure/sample/drawing.ts";
import { median, type Summary, summary } from "../../src/measure/stats.ts";
import { Problem } from "../../src/std/problem.ts";
import { table } from "../../src/std/text-table.ts";
import type { Figure } from "../proof.ts";
import { storeOf } from "./throughput.ts";

export interface BesidePlan {
  readonly rounds: number;
  readonly chunks: number;
  readonly warmup: number;
  readonly settleMs: number;
}

const MB_PER_SECOND = 20;
/** Asked for: the robot's p99 beside an upload, of that alone; more where two runs alone differ by more. */
const RATIO_MAX = 1.1;

const ARMS = {
  "A alone": undefined,
  "A' alone again": undefined,
  "B beside an upload": { rate: MB_PER_SECOND, past: false },
  "C beside uploads flat out": { rate: 0, past: false },
  "D beside an upload past the service": { rate: MB_PER_SECOND, past: true },
  "E beside uploads flat out past the service": { rate: 0, past: true },
} as const;
type Arm = keyof typeof ARMS;
const NAMES = Object.keys(ARMS) as Arm[];

interface Driven {
  readonly chunk: Summary;
  readonly mbPerSecond: number;
}
type Round = Readonly<Record<Arm, Driven>>;

export async function beside(plan: BesidePlan): Promise<{ rows: Figure[]; text: string } | Problem> {
  const frames = await sampleFrames(0);
  if (frames instanceof Problem) return frames;
  const rounds: Round[] = [];
  for (let at = 0; at < plan.rounds; at += 1) {
    const round = await measuredRound(plan, frames);
    if (round instanceof Problem) return round;
    rounds.push(round);
  }
  return { rows: figures(rounds), text: roundsText(rounds) };
}

async function measuredRound(plan: BesidePlan, frames: Uint8Array[]): Promise<Round | Problem> {
  const child = await startChild({ device: "echo" });
  if (child instanceof Problem) return child;
  try {
    const found = new Map<Arm, Driven>();
    const warm = await drive(child, plan.warmup, "warm", frames);
    if (warm instanceof Problem) return await child.explain(warm);
    for (const name of NAMES) {
      const driven = await measuredArm(name, child, plan, frames);
      if (driven instanceof Problem) return await child.explain(driven);
      found.set(name, driven);
    }
    return Object.fromEntries(found) as Round;
  } finally {
    await child.stop();
  }
}

async function measuredArm(name: Arm, child: Child, plan: BesidePlan, frames: Uint8Array[]): Promise<Driven | Problem> {
  await using uploads = await startUploads(name, child);
  if (uploads instanceof Problem) return uploads;
  await Bun.sleep(plan.settleMs);
  uploads.count();
  const chunk = await drive(child, plan.chunks, `arm-${name.slice(0, 2)}`, frames);
  if (chunk instanceof Problem) return chunk;
  const mbPerSecond = await uploads.stop();
  return mbPerSecond instanceof Problem ? mbPerSecond : { chunk, mbPerSecond };
}

interface Uploads extends AsyncDisposable {
  /** From here on its bytes are counted. */
  count(): void;
  /** MB a second. */
  stop(): Promise<number | Problem>;
}

const Sent = Type.Object({ mb_per_second: Type.Number() });

async function startUploads(name: Arm, child: Child): Promise<Uploads | (Problem & AsyncDisposable)> {
  const about = ARMS[name];
  if (!about) return { count: () => {}, stop: async () => 0, [Symbol.asyncDispose]: async () => {} };
  const sink = about.past ? await startSink() : undefined;
  const { url, apiKey } = storeOf(child, name.slice(0, 1));
  const words = [join(import.meta.dir, "uploads-child.ts"), sink?.url ?? url, apiKey, String(about.rate)];
  let heard = Promise.withResolvers<unknown>();
  const sender = Bun.spawn([process.execPath, ...words], {
    env: childEnvironment({}),
    stdio: ["ignore", "ignore", "inherit"],
    ipc: (message) => heard.resolve(message),
    onExit: () => heard.resolve("the uploads ended by themselves"),
  });
  const end = async () => {
    sender.kill();
    await sender.exited;
    await sink?.[Symbol.asyncDispose]();
  };
  const said = await heard.promise;
  heard = Promise.withResolvers();
  if (said !== "open") return Object.assign(new Problem(`${name}: ${String(said)}`), { [Symbol.asyncDispose]: end });
  return {
    count: () => sender.send("count"),
    stop: async () => {
      sender.send("stop");
      const answer = await heard.promise;
      return Value.Check(Sent, answer) ? answer.mb_per_second : new Problem(`${name}: ${String(answer)}`);
    },
    [Symbol.asyncDispose]: end,
  };
}

async function startSink(): Promise<{ readonly url: string } & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-bench-sink-"));
  const server = Bun.spawn([process.execPath, join(import.meta.dir, "sink-child.ts"), folder], {
    stdin: "ignore",
    stdout: "pipe",
    env: childEnvironment({}),
  });
  const url = await firstLine(server.stdout);
  return {
    url: `${url ?? ""}/sink`,
    [Symbol.asyncDispose]: async () => {
      server.kill();
      await server.exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function drive({ service }: Child, chunks: number, sessionPrefix: string, frames: Uint8Array[]) {
  const driven = await driveChunks({ service, robots: 1, chunks, warmup: 0, scenes: [frames], sessionPrefix });
  return driven instanceof Problem ? driven : summary(driven.ms.client);
}

function figures(rounds: readonly Round[]): Figure[] {
  const middle = (of: (round: Round) => number): number => median(rounds.map(of));
  const alone = (round: Round): number => (round["A alone"].chunk.p99 + round["A' alone again"].chunk.p99) / 2;
  const spread = middle((round) => {
    const ratio = round["A' alone again"].chunk.p99 / round["A alone"].chunk.p99;
    return Math.max(ratio, 1 / ratio);
  });
  const limit = Math.max(RATIO_MAX, Math.round(spread * 1000) / 1000);
  const times = NAMES.flatMap((arm) =>
    (["p50", "p99"] as const).map((order) => ({
      measure: `${arm}, chunk ${order}`,
      value: middle((round) => round[arm].chunk[order]),
      unit: "ms",
    })),
  );
  const speeds = NAMES.filter((arm) => ARMS[arm]).map((arm) => ({
    measure: `${arm}, uploaded`,
    value: middle((round) => round[arm].mbPerSecond),
    unit: "MB/s",
  }));
  const ratio = (arm: Arm) => middle((round) => round[arm].chunk.p99 / alone(round));
  return [
    ...times,
    ...speeds,
    { measure: "p99, A and A' apart", value: spread, unit: "1" },
    { measure: `p99, B / A, ${MB_PER_SECOND} MB/s`, value: ratio("B beside an upload"), unit: "1", limit },
    {
      measure: "p99, D / A: the same past the service",
      value: ratio("D beside an upload past the service"),
      unit: "1",
    },
    { measure: "p99, C / A, flat out", value: ratio("C beside uploads flat out"), unit: "1" },
    {
      measure: "p99, E / A: flat out past the service",
      value: ratio("E beside uploads flat out past the service"),
      unit: "1",
    },
  ];
}

function roundsText(rounds: readonly Round[]): string {
  const lines = rounds.flatMap((round, index) =>
    NAMES.map((arm) => {
      const { chunk, mbPerSecond } = round[arm];
      const times = [chunk.p50, chunk.p90, chunk.p99].map((ms) => ms.toFixed(3));
      return [String(index + 1), arm, ...times, mbPerSecond.toFixed(0)];
    }),
  );
  return table(
    [["round", "robot", "p50 ms", "p90 ms", "p99 ms", "MB/s"], ...lines],
    ["left", "left", "right", "right", "right", "right"],
  );
}
