/**
 * What do authentication, hold and settlement add to a chunk?
 *
 * One robot sends episodes over HTTP to a service whose ledger answers at once from memory (A) and to the real one (B), in turns of
 * some chunks. What the disk alone costs is measured between the turns, while both are idle, so that a disk or a machine that
 * changes its pace does so for all three. Each round has fresh processes and an empty ledger. The work that A does too (digest of
 * the key, prices) is measured in this process and added.
 */
import { authenticate } from "../src/account/authenticate.ts";
import { keyDigest, keyPublicId, makeKey } from "../src/account/key.ts";
import { Keys } from "../src/account/keys.ts";
import { sampleFrames } from "../src/cli/drawing.ts";
import { measure } from "../src/cli/load.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../src/cli/sample.ts";
import { median } from "../src/cli/stats.ts";
import { table } from "../src/cli/table.ts";
import { ROBOT_DEFAULT } from "../src/config.ts";
import { Failure, Problem } from "../src/error.ts";
import { Meter } from "../src/meter/meter.ts";
import { systemClock } from "../src/std/clock.ts";
import { AT_ONCE } from "./at-once-store.ts";
import { ABSENT, LEDGERS, type Ledger, type Measured, openLedger } from "./ledger.ts";
import { type Figure, figureLines, type Proof, withinLimits } from "./proof.ts";

const SIZES = {
  small: { rounds: 1, turns: 2, chunks: 10, warmup: 5, bare: 10, judged: false },
  full: { rounds: 5, turns: 20, chunks: 50, warmup: 200, bare: 20, judged: true },
} as const;
type Plan = (typeof SIZES)[keyof typeof SIZES];

/** Asked for: what they add to a chunk's median beyond what the disk alone costs. */
const OVERHEAD_MS_MAX = 0.7;
const SCENES = 4;

interface Round {
  readonly atOnceMs: number;
  readonly realMs: number;
  readonly bareMs: number;
}

export const overhead: Proof = {
  name: "overhead",
  question: "What do authentication, hold and settlement add to a chunk?",
  async run(size) {
    const plan = SIZES[size];
    const scenes: Uint8Array[][] = [];
    for (let seed = 0; seed < SCENES; seed += 1) {
      const frames = await sampleFrames(seed);
      if (frames instanceof Problem) return frames;
      scenes.push(frames);
    }
    const ownMs = await ownCostMs(plan.turns * plan.chunks);
    const rows: Figure[] = [
      { measure: "key's digest, prices and checks, without a store, p50", value: ownMs, unit: "ms" },
    ];
    const texts: string[] = [];
    for (const name of LEDGERS) {
      await using ledger = await openLedger(name);
      if (!ledger) {
        texts.push(ABSENT);
        continue;
      }
      const rounds: Round[] = [];
      for (let at = 0; at < plan.rounds; at += 1) {
        const round = await measuredRound(ledger, plan, scenes);
        if (round instanceof Problem) return round;
        rounds.push(round);
      }
      texts.push(roundsText(name, rounds));
      rows.push(...figures(name, ledger.bare, rounds, ownMs, plan.judged));
    }
    const text = [...texts, table(figureLines(rows), ["left", "right"])].join("\n");
    return { text, rows, pass: withinLimits(rows) };
  },
};

async function measuredRound(ledger: Ledger, plan: Plan, scenes: Uint8Array[][]): Promise<Round | Problem> {
  const without = await ledger.start("at once");
  if (without instanceof Problem) return without;
  try {
    const real = await ledger.start("real");
    if (real instanceof Problem) return real;
    try {
      return await inTurns(without, real, plan, scenes);
    } finally {
      await real.child.stop();
    }
  } finally {
    await without.child.stop();
  }
}

async function inTurns(
  without: Measured,
  real: Measured,
  plan: Plan,
  scenes: Uint8Array[][],
): Promise<Round | Problem> {
  const ms = { without: [] as number[], real: [] as number[], bare: [] as number[] };
  for (let turn = 0; turn < plan.turns; turn += 1) {
    for (const [name, { child }] of Object.entries({ without, real })) {
      const driven = await measure({
        service: child.service,
        model: SAMPLE_MODEL,
        robots: 1,
        chunks: plan.chunks,
        // The first chunk of a session asks whether there was one before, later ones do not.
        warmup: turn === 0 ? plan.warmup : 1,
        scenes,
        instruction: SAMPLE_INSTRUCTION,
        state: SAMPLE_STATE,
        sessionPrefix: `overhead-${turn}`,
      });
      if (driven instanceof Problem) return await child.explain(driven);
      ms[name === "real" ? "real" : "without"].push(...driven.ms.client);
    }
    ms.bare.push(...(await real.bareMs(plan.bare)));
  }
  return { atOnceMs: median(ms.without), realMs: median(ms.real), bareMs: median(ms.bare) };
}

/** The median of authentication, hold and settlement themselves, where no store keeps them waiting. */
async function ownCostMs(count: number): Promise<number> {
  const clock = systemClock;
  const key = makeKey();
  const publicId = keyPublicId(key) ?? "";
  const used = { createdAt: 0, lastUsedAt: undefined, revokedAt: undefined };
  const record = { publicId, sha256: keyDigest(key), accountId: "acct_own", name: "own", ...used };
  const keys = new Keys({ ...AT_ONCE, keyByPublicId: async () => record }, clock);
  const robot = ROBOT_DEFAULT;
  const { promptNanosPerToken: prompt, cachedPromptNanosPerToken: cachedPrompt, rowNanosPerRow: completion } = robot;
  const meter = new Meter({
    store: AT_ONCE,
    clock,
    rates: () => ({ prompt, cachedPrompt, completion }),
    runMs: 10_000,
  });
  const tokens = { promptTokens: 1000, completionTokens: 30 };
  const ms: number[] = [];
  for (let at = 0; at < count; at += 1) {
    await keys.refresh();
    const before = performance.now();
    const principal = await authenticate(`Bearer ${key}`, keys);
    if (principal instanceof Failure) return Number.NaN;
    const hold = await meter.hold({
      runId: `gen_${at}`,
      accountId: principal.accountId,
      model: SAMPLE_MODEL,
      ...tokens,
    });
    if (hold instanceof Failure) return Number.NaN;
    await hold.settle({ ...tokens, cachedTokens: 0 }, { session: undefined, observation: undefined });
    ms.push(performance.now() - before);
  }
  return median(ms);
}

function roundsText(name: string, rounds: readonly Round[]): string {
  const lines = rounds.map(({ atOnceMs, realMs, bareMs }, index) => [
    String(index + 1),
    ...[atOnceMs, realMs, realMs - atOnceMs, bareMs].map((ms) => ms.toFixed(3)),
  ]);
  const head = [`${name}, round`, "A p50 ms", "B p50 ms", "B - A", "bare"];
  return table([head, ...lines], ["left", "right", "right", "right", "right"]);
}

/** Differences are taken within a round, so that what changes slowly is in both of its sides. */
function figures(name: string, bare: string, rounds: readonly Round[], ownMs: number, judged: boolean): Figure[] {
  const middle = (of: (round: Round) => number): number => median(rounds.map(of));
  const beyond = ({ atOnceMs, realMs, bareMs }: Round): number => realMs - atOnceMs + ownMs - bareMs;
  const measured = [
    ["chunk p50, ledger answers at once (A)", middle(({ atOnceMs }) => atOnceMs)],
    ["chunk p50, real ledger (B)", middle(({ realMs }) => realMs)],
    ["difference", middle(({ atOnceMs, realMs }) => realMs - atOnceMs)],
    [`${bare}, p50`, middle(({ bareMs }) => bareMs)],
  ] as const;
  return [
    ...measured.map(([what, value]) => ({ measure: `${name}: ${what}`, value, unit: "ms" })),
    {
      measure: `${name}: authentication, hold and settlement beyond ${bare}`,
      value: middle(beyond),
      unit: "ms",
      ...(judged ? { limit: OVERHEAD_MS_MAX } : {}),
    },
  ];
}
