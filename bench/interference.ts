/**
 * Does a robot feel 500 paid requests a second of another account?
 *
 * Models answer zeros at once (echo), for the robot and for the other account: the question is the ledger, not the model. In each
 * round, each time with a fresh process and an empty ledger: the robot alone (A), alone again (A'), beside the other account's
 * requests (B). As a control the same without a ledger, that is with one that answers at once from memory: alone (C) and beside the
 * requests (D). D / C is the effect of HTTP, JSON, decoding and the cores that service, robot and requests share; what B / A is
 * above that is the effect of the ledger.
 */
import { availableParallelism } from "node:os";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { median, type Summary, summary } from "../src/measure/stats.ts";
import { present } from "../src/std/assert.ts";
import { Problem } from "../src/std/problem.ts";
import { table } from "../src/std/text-table.ts";
import { absentText, type Ledger, type Measured, measuredLedgers } from "./ledger.ts";
import { type Neighbor, startNeighbor } from "./neighbor.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const SIZES = {
  small: { rounds: 1, chunks: 20, warmup: 5, perSecond: 50, settleMs: 100 },
  full: { rounds: 5, chunks: 2000, warmup: 200, perSecond: 500, settleMs: 2000 },
} as const;
type Plan = (typeof SIZES)[keyof typeof SIZES];

/** Asked for: the robot's p99 beside the requests, of that alone; more where two runs alone differ by more. */
const RATIO_MAX = 1.1;
/** Of the requests that were due. */
const UNSENT_MAX = 0.01;

const ARMS = {
  A: { about: "alone", kind: "real", beside: false },
  "A'": { about: "alone again", kind: "real", beside: false },
  B: { about: "beside the requests", kind: "real", beside: true },
  C: { about: "alone, without ledger", kind: "at once", beside: false },
  D: { about: "beside the requests, without ledger", kind: "at once", beside: true },
} as const;
type ArmName = keyof typeof ARMS;
const ARM_NAMES = ["A", "A'", "B", "C", "D"] as const;

type Requests = Exclude<Awaited<ReturnType<Neighbor["stop"]>>, Problem>;

interface Driven {
  readonly chunk: Summary;
  readonly requests: Requests | undefined;
}
type Round = Readonly<Record<ArmName, Driven>>;

export const interference: Proof = {
  name: "interference",
  question: "Does a robot feel 500 paid requests a second of another account?",
  async run(size) {
    const plan = SIZES[size];
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    const found = await measuredLedgers(plan.rounds, (ledger) => measuredRound(ledger, plan, frames));
    if (found instanceof Problem) return found;
    const rows = found.flatMap(({ name, rounds }) => figures(name, rounds, plan));
    const texts = [...found.map(({ name, rounds }) => roundsText(name, rounds)), ...absentText(found)];
    const about = `service, robot and requests share ${availableParallelism()} cores; models answer at once (echo)\n`;
    return judged(rows, { above: [about, ...texts, ""].join("\n") });
  },
};

/** The arms one after the other. */
async function measuredRound(ledger: Ledger, plan: Plan, frames: Uint8Array[]): Promise<Round | Problem> {
  const round = new Map<ArmName, Driven>();
  for (const name of ARM_NAMES) {
    const measured = await ledger.start(ARMS[name].kind);
    if (measured instanceof Problem) return measured;
    try {
      const driven = await driveArm(measured, ARMS[name].beside, plan, frames);
      if (driven instanceof Problem) return await measured.child.explain(driven);
      round.set(name, driven);
    } finally {
      await measured.child.stop();
    }
  }
  const of = (name: ArmName) => present(round.get(name), `arm ${name}`);
  return { A: of("A"), "A'": of("A'"), B: of("B"), C: of("C"), D: of("D") };
}

async function driveArm(
  measured: Measured,
  beside: boolean,
  plan: Plan,
  frames: Uint8Array[],
): Promise<Driven | Problem> {
  const neighbor = beside ? await startNeighbor(measured, plan.perSecond) : undefined;
  if (neighbor instanceof Problem) return neighbor;
  // Also without requests, so that both arms have the same pause: a new service does its first upkeep then.
  await Bun.sleep(plan.settleMs);
  const warm = await drive(measured, plan.warmup, "warm", frames);
  neighbor?.count();
  const driven = warm instanceof Problem ? warm : await drive(measured, plan.chunks, "robot", frames);
  const requests = await neighbor?.stop();
  if (driven instanceof Problem) return driven;
  return requests instanceof Problem ? requests : { chunk: driven, requests };
}

async function drive(
  { child }: Measured,
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

function roundsText(name: string, rounds: readonly Round[]): string {
  const lines = rounds.flatMap((round, index) =>
    ARM_NAMES.map((arm) => {
      const { chunk, requests } = round[arm];
      const of = requests ? [requests.per_second, requests.failed, requests.p50_ms, requests.p99_ms] : [];
      const shown = of.map((value) => (Number.isInteger(value) ? String(value) : value.toFixed(1)));
      const failure = requests?.first_failure ?? "";
      const times = [chunk.p50, chunk.p90, chunk.p99].map((ms) => ms.toFixed(3));
      return [String(index + 1), `${arm} ${ARMS[arm].about}`, ...times, ...shown, failure];
    }),
  );
  const head = [`${name}, round`, "robot", "p50 ms", "p90 ms", "p99 ms", "requests/s", "failed", "p50 ms", "p99 ms"];
  return table([head, ...lines], ["left", "left", ...Array.from({ length: 7 }, () => "right" as const)]);
}

function figures(name: string, rounds: readonly Round[], { perSecond }: Plan): Figure[] {
  const figure = (measure: string, value: number, unit: string, limit?: number): Figure => ({
    ...{ measure: `${name}: ${measure}`, value, unit },
    ...(limit === undefined ? {} : { limit }),
  });
  const times = ARM_NAMES.flatMap((arm) =>
    (["p50", "p90", "p99"] as const).map((order) => {
      const value = median(rounds.map((round) => round[arm].chunk[order]));
      return figure(`${arm}, ${ARMS[arm].about}, ${order}`, value, "ms");
    }),
  );
  // B is compared with the mean of both runs alone.
  const alone = (round: Round): number => (round.A.chunk.p99 + round["A'"].chunk.p99) / 2;
  const ratios = (of: (round: Round) => number): number[] => rounds.map(of);
  const apart = ratios((round) => {
    const ratio = round["A'"].chunk.p99 / round.A.chunk.p99;
    return Math.max(ratio, 1 / ratio);
  });
  const spread = median(apart);
  const limit = Math.max(RATIO_MAX, Math.round(spread * 1000) / 1000);
  const sent = rounds.flatMap((round) => ARM_NAMES.flatMap((arm) => round[arm].requests ?? []));
  const slowest = Math.min(...sent.map((requests) => requests.per_second));
  const failed = sent.reduce((total, requests) => total + requests.failed, 0);
  return [
    ...times,
    figure("p99, A and A' apart, median of rounds", spread, "1"),
    figure("p99, A and A' apart, greatest", Math.max(...apart), "1"),
    figure("p99, B / A, median of rounds", median(ratios((round) => round.B.chunk.p99 / alone(round))), "1", limit),
    figure("p99, control D / C, median of rounds", median(ratios(({ C, D }) => D.chunk.p99 / C.chunk.p99)), "1"),
    figure("requests a second, slowest run", slowest, "1"),
    figure("share of the requests that were due but not sent", Math.max(0, 1 - slowest / perSecond), "1", UNSENT_MAX),
    figure("requests that were not answered with 200", failed, "1", 0),
  ];
}
