/**
 * Does a robot feel the other work of its node?
 *
 * Each round has one fresh service with an empty ledger, models that answer zeros at once (echo), and a provider of language models in a
 * separate process. The robot is alone, alone again, and beside each kind of work (interference/kinds.ts); every second round goes
 * backwards. Robot, service and load share the machine's cores and its disk. So a control sends the same load past the service: what
 * the robot feels beside the load above that is the service's own doing. On PostgreSQL only the other account's requests are measured.
 */
import { readFile, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Type } from "@sinclair/typebox";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { type Summary, summary } from "../src/measure/stats.ts";
import { present } from "../src/std/assert.ts";
import { Problem } from "../src/std/problem.ts";
import { table } from "../src/std/text-table.ts";
import { addAccount } from "./accounts.ts";
import { startHelper } from "./child.ts";
import { KIND_NAMES, KINDS, type KindName, type Order, Sent } from "./interference/kinds.ts";
import { absentText, type Ledger, type LedgerRounds, type Measured, measuredLedgers } from "./ledger.ts";
import { startProvider } from "./llm/setup.ts";
import { type Figure, judged, medianOver, type Proof } from "./proof.ts";

const SIZES = {
  small: { rounds: 1, chunks: 20, warmup: 5, settleMs: 100, share: 0.05 },
  full: { rounds: 5, chunks: 2000, warmup: 300, settleMs: 1000, share: 1 },
} as const;
type Plan = (typeof SIZES)[keyof typeof SIZES];

/** Memory of the service beside the crowd above that of the robot alone: all of its budgets for bodies and messages (LIMITS). */
const GROWTH_MIB_MAX = 384 + 224;

/** The least rate of requests; 500 a second are due. */
const REQUESTS_LEAST = 495;

interface Arm {
  readonly name: string;
  /** Undefined: the robot is alone. */
  readonly kind?: KindName;
  readonly isControl?: boolean;
}

const ALONE: readonly Arm[] = [{ name: "alone" }, { name: "alone again" }];

function armsOf(kinds: readonly KindName[]): Arm[] {
  const arms = kinds.flatMap((kind): Arm[] => {
    const beside = { name: `beside ${kind}`, kind };
    return KINDS[kind].hasControl ? [beside, { name: `control, ${kind}`, kind, isControl: true }] : [beside];
  });
  return [...ALONE, ...arms];
}

interface Driven {
  readonly chunk: Summary;
  readonly sent: Sent | undefined;
  /** The service's greatest resident memory in this arm. */
  readonly residentMib: number;
}
/** Results by the name of the arm. */
type Round = ReadonlyMap<string, Driven>;

export const interference: Proof = {
  name: "interference",
  question:
    "Does a robot feel the other work of its node: other accounts, uploads, streams, people, a crowd that pays nothing?",
  async run(size) {
    const plan = SIZES[size];
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    let backwards = false;
    const found = await measuredLedgers(plan.rounds, async (ledger) => {
      const arms = armsOf(kindsOf(ledger));
      backwards = !backwards;
      return await measuredRound(ledger, backwards ? arms : arms.toReversed(), plan, frames);
    });
    if (found instanceof Problem) return found;
    const about = `Service, robot and load share ${availableParallelism()} cores. ${kindTexts().join(" ")}\n`;
    const above = [about, ...found.map(roundsText), ...absentText(found), ""].join("\n");
    return judged(found.flatMap(figures), { above });
  },
};

function kindsOf({ name }: Pick<Ledger, "name">): readonly KindName[] {
  return name === "SQLite" ? KIND_NAMES : ["requests"];
}

function kindTexts(): string[] {
  return KIND_NAMES.map((kind) => `${kind}: ${KINDS[kind].about}.`);
}

async function measuredRound(
  ledger: Ledger,
  arms: readonly Arm[],
  plan: Plan,
  frames: Uint8Array[],
): Promise<Round | Problem> {
  const provider = await startProvider();
  if (provider instanceof Problem) return provider;
  await using _helper = provider.helper;
  const measured = await ledger.start("real", provider.configuration);
  if (measured instanceof Problem) return measured;
  const { child } = measured;
  try {
    const otherKey = await addAccount(measured.beside, "other");
    if (otherKey instanceof Problem) return otherKey;
    const spentKey = await addAccount(measured.beside, "spent", { isSpent: true });
    if (spentKey instanceof Problem) return spentKey;
    const order = { ...child.service, providerUrl: provider.url, otherKey, spentKey, share: plan.share };
    const cold = await drive(measured, plan.warmup, "warm", frames);
    if (cold instanceof Problem) return await child.explain(cold);
    const round = new Map<string, Driven>();
    for (const arm of arms) {
      const driven = await measuredArm(measured, arm, order, plan, frames);
      if (driven instanceof Problem) return await child.explain(new Problem(`${arm.name}: ${driven.message}`));
      round.set(arm.name, driven);
    }
    return round;
  } finally {
    await child.stop();
  }
}

async function measuredArm(
  measured: Measured,
  { name, kind, isControl = false }: Arm,
  order: Omit<Order, "kind" | "isControl">,
  plan: Plan,
  frames: Uint8Array[],
): Promise<Driven | Problem> {
  const { pid } = measured.child;
  await using sink = isControl ? startHelper("interference/sink-child.ts") : undefined;
  const url = (await sink?.ask("address", Type.String())) ?? order.url;
  if (url instanceof Problem) return url;
  await using load = kind && startHelper("interference/load-child.ts");
  const opened = kind && (await load?.ask({ ...order, kind, isControl, url }, Type.Literal("open")));
  if (opened instanceof Problem) return opened;
  // An arm without a load waits too, so that all arms have the same pause.
  await Bun.sleep(plan.settleMs);
  // The kernel's greatest value begins anew.
  await writeFile(`/proc/${pid}/clear_refs`, "5");
  const counting = await load?.ask("count", Type.Literal("counting"));
  if (counting instanceof Problem) return counting;
  const chunk = await drive(measured, plan.chunks, name.replaceAll(/[^a-z]+/g, "-"), frames);
  const residentMib = Number(/^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
  if (chunk instanceof Problem) return chunk;
  const sent = await load?.ask("stop", Sent);
  return sent instanceof Problem ? sent : { chunk, sent, residentMib };
}

/** One refused chunk is a problem. */
async function drive({ child }: Measured, chunks: number, sessionPrefix: string, frames: Uint8Array[]) {
  const load = { service: child.service, robots: 1, chunks, warmup: 0, scenes: [frames], sessionPrefix };
  const driven = await driveChunks(load);
  return driven instanceof Problem ? driven : summary(driven.ms.client);
}

function figures({ name: ledger, rounds }: LedgerRounds<Round>): Figure[] {
  const of = (round: Round, arm: string): Driven => present(round.get(arm), arm);
  const p99 = (round: Round, arm: string): number => of(round, arm).chunk.p99;
  const figure = medianOver(rounds, `${ledger}: `);
  const kinds = kindsOf({ name: ledger });
  const spread = figure("p99, alone and alone again apart", "1", (round) => {
    const ratio = p99(round, "alone again") / p99(round, "alone");
    return Math.max(ratio, 1 / ratio);
  });
  const ratio = (arm: string, limits: Partial<Figure> = {}) =>
    figure(
      `p99, ${arm} / alone`,
      "1",
      (round) => (2 * p99(round, arm)) / (p99(round, "alone") + p99(round, "alone again")),
      limits,
    );
  return [
    ...armsOf(kinds).flatMap(({ name }) =>
      (["p50", "p99"] as const).map((rank) => figure(`${name}, ${rank}`, "ms", (round) => of(round, name).chunk[rank])),
    ),
    spread,
    ...kinds.flatMap((kind) => {
      const { hasControl, ...about } = KINDS[kind];
      const limit = "limit" in about ? { limit: Math.max(about.limit, Math.round(spread.value * 1000) / 1000) } : {};
      const least = kind === "requests" ? { least: REQUESTS_LEAST } : {};
      const sent = (round: Round): Sent => present(of(round, `beside ${kind}`).sent, "a load");
      const failed = rounds.reduce((sum, round) => sum + sent(round).failed, 0);
      return [
        ratio(`beside ${kind}`, limit),
        ...(hasControl ? [ratio(`control, ${kind}`)] : []),
        ...("unit" in about ? [figure(`${kind}, sent`, about.unit, (round) => sent(round).perSecond, least)] : []),
        { measure: `${ledger}: ${kind}, failed`, value: failed, unit: "1", limit: 0 },
      ];
    }),
    ...kinds
      .filter((kind) => kind === "crowd")
      .map(() =>
        figure(
          "greatest memory beside the crowd, above that alone",
          "MiB",
          (round) => of(round, "beside crowd").residentMib - of(round, "alone").residentMib,
          { limit: GROWTH_MIB_MAX },
        ),
      ),
  ];
}

function roundsText({ name, rounds }: LedgerRounds<Round>): string {
  const lines = rounds.flatMap((round, index) =>
    [...round].map(([arm, { chunk, sent }]) => {
      const times = [chunk.p50, chunk.p90, chunk.p99].map((ms) => ms.toFixed(3));
      const answers = Object.entries(sent?.answers ?? {}).map(([what, count]) => `${what} ×${count}`);
      const load = sent === undefined ? ["", ""] : [sent.perSecond.toFixed(1), String(sent.failed)];
      return [String(index + 1), arm, ...times, ...load, sent?.firstFailure || answers.sort().join(", ")];
    }),
  );
  const head = [`${name}, round`, "robot", "p50 ms", "p90 ms", "p99 ms", "load a second", "failed", ""];
  return table([head, ...lines], ["left", "left", "right", "right", "right", "right", "right", "left"]);
}
