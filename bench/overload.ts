/**
 * Past its capacity, does the service still answer as many robots in time as at it, and is it itself again at once?
 *
 * The reference bundle on the CPU, three frames of 32×32 (so that the model, not the decoders, is what lacks), three accounts. First
 * eight robots that each wait for their answers show the capacity. Then observations come at 1, 2, 5 and 10 times that rate, whether
 * earlier ones are answered or not (open loop), each with a `deadline_ms`. Goodput is the chunks that the client has within that time
 * of the moment at which it was to send the observation, a second. After each load one robot asks again and again: recovery is the
 * time until its answers take as long as before any load.
 *
 * The capacity is measured anew in each round. Loads rise in one round and fall in the next. Figures are medians over the rounds.
 *
 * The load generator runs on the same cores: what it takes at ten times the rate, the model lacks. Outside the window: making the
 * bodies.
 */
import { Type } from "@sinclair/typebox";
import { type Child, startChild } from "../src/measure/child.ts";
import { median, summary } from "../src/measure/stats.ts";
import { openStore } from "../src/service/store.ts";
import { present } from "../src/std/assert.ts";
import { Problem } from "../src/std/problem.ts";
import { addAccount } from "./accounts.ts";
import { startHelper } from "./child.ts";
import { Became, type Load } from "./overload-messages.ts";
import { type Figure, judged, type Outcome, type Proof } from "./proof.ts";
import { smallRequest } from "./small-request.ts";

const SIZES = {
  small: { rounds: 1, seconds: 0.3, times: [1, 10] },
  full: { rounds: 5, seconds: 4, times: [1, 2, 5, 10] },
} as const;

const ROBOTS = 8;
const ACCOUNTS = 3;
/** The time of half of a chunk's rows. */
const DEADLINE_MS = 500;
/** Asked for: of the goodput at the capacity, that at ten times the load; and the recovery. */
const GOODPUT_LEAST = 0.8;
const RECOVERY_MS_MAX = 1_000;
/** The answers in a row that must be normal. */
const NORMAL_ANSWERS = 3;

export const overload: Proof = {
  name: "overload",
  question: "Past its capacity, does the service answer as many in time as at it, and is it itself again at once?",
  async run(size) {
    const child = await startChild({ device: "cpu" });
    if (child instanceof Problem) return child;
    try {
      const outcome = await measured(child, SIZES[size]);
      return outcome instanceof Problem ? await child.explain(outcome) : outcome;
    } finally {
      await child.stop();
    }
  },
};

type Plan = (typeof SIZES)["small" | "full"];

async function measured(child: Child, plan: Plan): Promise<Outcome | Problem> {
  const started = await startRobots(child);
  if (started instanceof Problem) return started;
  await using robots = started;
  // The first answers of a process are slow.
  const warm = await robots.drive({ robots: ROBOTS, seconds: plan.seconds });
  if (warm instanceof Problem) return warm;
  const rounds: Figure[][] = [];
  for (let at = 0; at < plan.rounds; at += 1) {
    const round = await oneRound(robots, plan, at % 2 === 0 ? plan.times : plan.times.toReversed());
    if (round instanceof Problem) return round;
    rounds.push(round);
  }
  return judged(overRounds(rounds));
}

/** The loads in this order; the figures in that of the plan. */
async function oneRound(robots: Robots, { seconds, times }: Plan, order: readonly number[]) {
  const alone = await robots.drive({ robots: 1, seconds: seconds / 2 });
  if (alone instanceof Problem) return alone;
  const full = await robots.drive({ robots: ROBOTS, seconds });
  if (full instanceof Problem) return full;
  const capacity = full.chunkMs.length / seconds;
  const normal = summary(alone.chunkMs);
  const loads = new Map<number, Became>();
  for (const factor of order) {
    const became = await robots.drive({ perSecond: factor * capacity, seconds });
    if (became instanceof Problem) return became;
    loads.set(factor, became);
  }
  const atCapacity = inTime(present(loads.get(1), "the load at the capacity")).length;
  return [
    { measure: `capacity, ${ROBOTS} robots that wait for their answers`, value: capacity, unit: "1/s" },
    { measure: "one robot alone, p50", value: normal.p50, unit: "ms" },
    { measure: "one robot alone, p99", value: normal.p99, unit: "ms" },
    ...times.flatMap((factor) =>
      figures(factor, present(loads.get(factor), "a load"), { seconds, atCapacity, normalMs: normal.p99 }),
    ),
  ];
}

/** The medians; of what must not be at all, the most. */
function overRounds(rounds: readonly (readonly Figure[])[]): Figure[] {
  const [first = []] = rounds;
  return first.map((figure, index) => {
    const values = rounds.map((round) => round[index]?.value ?? Number.NaN);
    return { ...figure, value: figure.limit === 0 ? Math.max(...values) : median(values) };
  });
}

function inTime({ chunkMs }: Became): number[] {
  return chunkMs.filter((ms) => ms <= DEADLINE_MS);
}

function figures(
  factor: number,
  became: Became,
  {
    seconds,
    atCapacity,
    normalMs,
  }: { readonly seconds: number; readonly atCapacity: number; readonly normalMs: number },
): Figure[] {
  const { sent, chunkMs, refusedMs, withdrawn, failed } = became;
  const good = inTime(became).length;
  const at = (measure: string, value: number, unit = "1", limits: Partial<Figure> = {}): Figure => ({
    measure: `${factor} x capacity: ${measure}`,
    value,
    unit,
    ...limits,
  });
  const rate = (measure: string, count: number) => at(measure, count / seconds, "1/s");
  const [chunks, refusals] = [summary(chunkMs), summary(refusedMs)];
  return [
    rate("observations sent", sent),
    rate(`goodput, chunks within ${DEADLINE_MS} ms`, good),
    at("goodput, of that at 1 x", good / atCapacity, "1", { least: GOODPUT_LEAST }),
    rate("chunks that came later", chunkMs.length - good),
    rate("refused at once", refusedMs.length - withdrawn),
    rate("withdrawn at the deadline", withdrawn),
    at("other answers, or none", failed, "1", { limit: 0 }),
    at("chunk, p50", chunks.p50, "ms"),
    at("chunk, p99", chunks.p99, "ms"),
    // Nothing may have been refused at the capacity.
    at("refusal, p50", refusals.count === 0 ? 0 : refusals.p50, "ms"),
    at("recovery after the load", recoveryMs(became, normalMs), "ms", { limit: RECOVERY_MS_MAX }),
  ];
}

/** Until the first of some answers in a row that are as fast as before; the last one where there are none. */
function recoveryMs({ after }: Became, normalMs: number): number {
  const isNormal = (at: number) => after.slice(at, at + NORMAL_ANSWERS).every(({ ms }) => ms <= normalMs);
  const first = after.findIndex((_, at) => at + NORMAL_ANSWERS <= after.length && isNormal(at));
  return (after[first] ?? after.at(-1))?.sinceMs ?? Number.NaN;
}

interface Robots extends AsyncDisposable {
  drive(load: Load): Promise<Became | Problem>;
}

async function startRobots(child: Child): Promise<Robots | Problem> {
  const beside = () => openStore({ dataDir: child.dataDir, databaseUrl: undefined }, "beside");
  const apiKeys: string[] = [];
  for (let n = 0; n < ACCOUNTS; n += 1) {
    const key = await addAccount(beside, `robots${n}`);
    if (key instanceof Problem) return key;
    apiKeys.push(key);
  }
  const request = await smallRequest();
  // Without its first brace: each observation puts its own fields before it.
  const body = `,${JSON.stringify(request).slice(1)}`;
  // More than Bun's 256 may be under way.
  const robots = startHelper("overload-child.ts", [], { BUN_CONFIG_MAX_HTTP_REQUESTS: "8192" });
  const target = { url: `${child.service.url}/v1/chat/completions`, apiKeys, body, deadlineMs: DEADLINE_MS };
  const ready = await robots.ask(target, Type.Literal("ready"));
  if (ready instanceof Problem) return ready;
  return {
    async drive(load) {
      const became = await robots.ask(load, Became);
      if (became instanceof Problem || became.chunkMs.length > 0) return became;
      return new Problem(`no observation was answered with a chunk: ${became.firstFailure}`);
    },
    [Symbol.asyncDispose]: () => robots[Symbol.asyncDispose](),
  };
}
