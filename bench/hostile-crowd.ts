/**
 * Does a paying robot feel a crowd that pays nothing? In each round, each time with a fresh process: the robot alone (A), alone again
 * (A'), beside the crowd of hostile-child.ts (B), and as a control while the crowd is at another program that refuses everything without
 * work (C): crowd, robot and service share the cores. Models answer zeros at once (echo).
 */
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { childEnvironment } from "../src/config/environment.ts";
import { type Child, firstLine, startChild } from "../src/measure/child.ts";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { median, type Summary, summary } from "../src/measure/stats.ts";
import { openStore } from "../src/service/store.ts";
import { present } from "../src/std/assert.ts";
import { Problem } from "../src/std/problem.ts";
import { otherKey } from "./neighbor.ts";
import type { Figure, Size } from "./proof.ts";

const SIZES = {
  small: { rounds: 1, chunks: 20, settleMs: 200, sockets: 4, slow: 10, unknownPerSecond: 50, bodiesPerSecond: 1 },
  full: {
    rounds: 5,
    chunks: 2000,
    settleMs: 3000,
    sockets: 64,
    slow: 200,
    unknownPerSecond: 1000,
    bodiesPerSecond: 10,
  },
} as const;
type Plan = (typeof SIZES)[Size];

/** Asked for. */
const RATIO_MAX = 1.25;
/** Of a service at rest, with all of its budgets for bodies and messages taken: LIMITS has them. */
const GROWTH_MIB_MAX = 384 + 224;

/** Where the crowd is, in the order of a round. */
const ARMS = ["nobody", "nobody", "elsewhere", "here"] as const;
type Crowded = (typeof ARMS)[number];

const Counts = Type.Record(Type.String(), Type.Integer());

interface Driven {
  readonly chunk: Summary;
  readonly residentMib: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** The figures, and what the crowd was answered. */
export async function crowd(size: Size): Promise<{ rows: Figure[]; text: string } | Problem> {
  const plan = SIZES[size];
  const frames = await sampleFrames(0);
  if (frames instanceof Problem) return frames;
  const rounds: Driven[][] = [];
  for (let at = 0; at < plan.rounds; at += 1) {
    const arms: Driven[] = [];
    for (const crowded of ARMS) {
      const child = await startChild({ device: "echo" });
      if (child instanceof Problem) return child;
      try {
        const driven = await drive(child, crowded, plan, frames);
        if (driven instanceof Problem) return await child.explain(driven);
        arms.push(driven);
      } finally {
        await child.stop();
      }
    }
    rounds.push(arms);
  }
  return { rows: figures(rounds), text: rounds.map(told).join("") };
}

async function drive(child: Child, crowded: Crowded, plan: Plan, frames: Uint8Array[]): Promise<Driven | Problem> {
  const sink = crowded === "elsewhere" ? await startSink() : undefined;
  try {
    return await driveBeside(child, { crowded, url: sink?.url ?? child.service.url }, plan, frames);
  } finally {
    sink?.stop();
  }
}

async function driveBeside(
  child: Child,
  { crowded, url }: { readonly crowded: Crowded; readonly url: string },
  plan: Plan,
  frames: Uint8Array[],
): Promise<Driven | Problem> {
  const others = crowded === "nobody" ? undefined : await startCrowd(child, url, plan);
  if (others instanceof Problem) return others;
  await Bun.sleep(plan.settleMs);
  const load = { service: child.service, robots: 1, scenes: [frames], sessionPrefix: "robot" };
  // One chunk that is refused ends the measurement with a problem.
  const driven = await driveChunks({ ...load, chunks: plan.chunks, warmup: Math.ceil(plan.chunks / 10) });
  const status = await Bun.file(`/proc/${child.pid}/status`).text();
  const residentMib = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  const counts = await others?.stop();
  if (driven instanceof Problem) return driven;
  if (counts instanceof Problem) return counts;
  return { chunk: summary(driven.ms.client), residentMib, counts: counts ?? {} };
}

async function startSink() {
  const sink = Bun.spawn([process.execPath, join(import.meta.dir, "hostile-sink.ts")], {
    env: childEnvironment({}),
    stdio: ["ignore", "pipe", "inherit"],
  });
  return { url: present(await firstLine(sink.stdout), "the address of hostile-sink.ts"), stop: () => sink.kill() };
}

async function startCrowd({ dataDir }: Child, url: string, plan: Plan) {
  const beside = () => openStore({ dataDir, databaseUrl: undefined }, "beside");
  const spentKey = await otherKey(beside, "spent", 1n, true);
  if (spentKey instanceof Problem) return spentKey;
  const another = await otherKey(beside, "another", 1_000_000_000n);
  if (another instanceof Problem) return another;
  const answer = Promise.withResolvers<unknown>();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "hostile-child.ts")], {
    env: childEnvironment({}),
    stdio: ["ignore", "ignore", "inherit"],
    ipc: (message) => answer.resolve(message),
    onExit: (_child, code, signal) => answer.resolve(new Problem(`hostile-child.ts ended with ${code ?? signal}`)),
  });
  const { sockets, slow, unknownPerSecond, bodiesPerSecond } = plan;
  child.send({ url, spentKey, otherKey: another, sockets, slow, unknownPerSecond, bodiesPerSecond });
  return {
    stop: async () => {
      child.send("stop");
      const counts = await answer.promise;
      await child.exited;
      if (counts instanceof Problem) return counts;
      return Value.Check(Counts, counts)
        ? counts
        : new Problem("hostile-child.ts answered something else than its counts");
    },
  };
}

function figures(rounds: readonly Driven[][]): Figure[] {
  const of = (arm: number, value: (driven: Driven) => number) =>
    median(rounds.flatMap((arms) => arms.slice(arm, arm + 1)).map(value));
  const p99 = (one: Driven) => one.chunk.p99;
  const ratio = (each: (alone: number, again: number, elsewhere: number, beside: number) => number) =>
    median(rounds.map((arms) => each(...(arms.map(p99) as [number, number, number, number]))));
  const spread = ratio((alone, again) => Math.max(alone / again, again / alone));
  const names = ["A, alone", "A', alone again", "C, the crowd at another program", "B, beside the crowd"];
  return [
    ...names.flatMap((name, arm) => [
      { measure: `robot ${name}, p50`, value: of(arm, ({ chunk }) => chunk.p50), unit: "ms" },
      { measure: `robot ${name}, p99`, value: of(arm, p99), unit: "ms" },
    ]),
    { measure: "robot, p99, A and A' apart", value: spread, unit: "1" },
    {
      measure: "robot, p99, control C / A",
      value: ratio((alone, again, elsewhere) => (2 * elsewhere) / (alone + again)),
      unit: "1",
    },
    {
      measure: "robot, p99, B / A",
      value: ratio((alone, again, _, beside) => (2 * beside) / (alone + again)),
      unit: "1",
      limit: Math.max(RATIO_MAX, spread),
    },
    {
      measure: "greatest memory beside the crowd, above that alone",
      value: of(3, ({ residentMib }) => residentMib) - of(0, ({ residentMib }) => residentMib),
      unit: "MiB",
      limit: GROWTH_MIB_MAX,
    },
  ];
}

function told(arms: readonly Driven[], round: number): string {
  const answers = Object.entries(arms[3]?.counts ?? {}).map(([what, count]) => `${what}: ${count}`);
  return `round ${round + 1}, the crowd was answered: ${answers.sort().join(", ")}\n`;
}
