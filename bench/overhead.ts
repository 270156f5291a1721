/**
 * What do authentication, hold and settlement add to a chunk?
 *
 * One robot sends episodes over HTTP to three services. It changes the service every few chunks, so that a disk or a machine that
 * gets slower does so for all of them. The ledger of A answers at once from memory, a settlement of B is a single durable write,
 * and C is the real service. B - A is what such a write costs; C - B is what the ledger costs beyond it. Each round has fresh
 * processes and an empty ledger. Work that all three do (digest of the key, prices) is measured in this process and added.
 */
import { authenticate } from "../src/account/authenticate.ts";
import { newKey } from "../src/account/key.ts";
import { Keys } from "../src/account/keys.ts";
import { Charges } from "../src/charge/charges.ts";
import { BUILT_IN_RATES } from "../src/config/robot.ts";
import { driveChunks } from "../src/measure/chunk/load.ts";
import { SAMPLE_MODEL } from "../src/measure/sample/observation.ts";
import { drawnScenes, type Scenes } from "../src/measure/sample/scenes.ts";
import { median } from "../src/measure/stats.ts";
import { systemClock } from "../src/std/clock.ts";
import { Failure } from "../src/std/failure.ts";
import { Problem } from "../src/std/problem.ts";
import { ServiceClock } from "../src/std/seen-clock.ts";
import { AT_ONCE } from "./at-once-store.ts";
import { type Answers, absentText, type Ledger, measuredLedgers } from "./ledger.ts";
import { type Figure, judged, medianOver, type Proof } from "./proof.ts";
import { type Contender, inTurns, middle } from "./turns.ts";

const SIZES = {
  small: { rounds: 1, turns: 2, chunks: 10, warmup: 1 },
  full: { rounds: 5, turns: 20, chunks: 50, warmup: 4 },
} as const;
type Plan = (typeof SIZES)[keyof typeof SIZES];

/** Asked for: what they add to a chunk's median beyond what the disk alone costs. */
const OVERHEAD_MS_MAX = 0.7;
const SCENES = 4;

/** In the order in which they take turns. */
const ANSWERS = ["at once", "bare", "real"] as const satisfies readonly Answers[];
/** Medians in ms. */
type Round = Readonly<Record<Answers, number>>;

export const overhead: Proof = {
  name: "overhead",
  question: "What do authentication, hold and settlement add to a chunk?",
  async run(size) {
    const plan = SIZES[size];
    const scenes = await drawnScenes(SCENES);
    if (scenes instanceof Problem) return scenes;
    const ownMs = await ownCostMs(plan.turns * plan.chunks);
    const found = await measuredLedgers(plan.rounds, (ledger) => measuredRound(ledger, plan, scenes));
    if (found instanceof Problem) return found;
    const rows: Figure[] = [
      { measure: "key's digest, prices and checks, without a store, p50", value: ownMs, unit: "ms" },
      ...found.flatMap(({ name, bare, rounds }) => figures(name, bare, rounds, ownMs)),
    ];
    return judged(rows, { below: absentText(found).join("") });
  },
};

/** One round: medians of the three services, measured in alternation. */
async function measuredRound(ledger: Ledger, plan: Plan, scenes: Scenes): Promise<Round | Problem> {
  const contenders = ANSWERS.map(
    (answers): Contender<readonly number[]> => ({
      ...{ name: answers, own: true },
      start: async () => {
        const service = await ledger.start(answers);
        if (service instanceof Problem) return service;
        const { child } = service;
        let turns = 0;
        return {
          async turn() {
            turns += 1;
            // Each turn is a new session. Its first chunk looks for an earlier session of that name.
            const load = { robots: 1, chunks: plan.chunks, warmup: 1, scenes, sessionPrefix: `overhead-${turns}` };
            const driven = await driveChunks({ service: child.service, ...load });
            return driven instanceof Problem ? await child.explain(driven) : driven.ms.client;
          },
          stop: () => child.stop(),
        };
      },
    }),
  );
  const done = await inTurns(async () => contenders, { ...plan, rounds: 1 });
  if (done instanceof Problem) return done;
  const of = (answers: Answers) => middle(done.rounds, answers, (turns) => median(turns.flat()));
  return { "at once": of("at once"), bare: of("bare"), real: of("real") };
}

/** The median of authentication, hold and settlement with a store that answers at once. */
async function ownCostMs(count: number): Promise<number> {
  const clock = new ServiceClock(systemClock);
  const { key, record: made } = newKey(0);
  const record = { ...made, accountId: "acct_own", name: "own", lastUsedAt: undefined, revokedAt: undefined };
  const keys = new Keys({ ...AT_ONCE.accounts, keyByPublicId: async () => record }, clock);
  const rates = BUILT_IN_RATES;
  const log = { info: () => {}, error: () => {} };
  const charges = new Charges({ store: AT_ONCE.charges, clock, log, clamped: { inc: () => {} } });
  const tokens = { promptTokens: 1000, completionTokens: 30 };
  const ms: number[] = [];
  for (let at = 0; at < count; at += 1) {
    await keys.refresh();
    const before = performance.now();
    const principal = await authenticate(`Bearer ${key}`, keys);
    if (principal instanceof Failure) return Number.NaN;
    const charge = await charges.hold({
      chargeId: `gen_${at}`,
      accountId: principal.accountId,
      item: SAMPLE_MODEL,
      rates,
      max: tokens,
      deadlineMs: 10_000,
    });
    if (charge instanceof Failure) return Number.NaN;
    await charges.settle(charge, { ...tokens, cachedTokens: 0 }, () => AT_ONCE.robot.settleChunk());
    ms.push(performance.now() - before);
  }
  return median(ms);
}

/** Differences are taken within a round, so that slow changes of the machine are in both sides. */
function figures(name: string, bare: string, rounds: readonly Round[], ownMs: number): Figure[] {
  const figure = medianOver(rounds, `${name}: `);
  const beyond = `authentication, hold and settlement beyond ${bare} (C - B and what all do)`;
  return [
    figure("chunk p50, ledger answers at once (A)", "ms", (round) => round["at once"]),
    figure(`chunk p50, a settlement is ${bare} (B)`, "ms", (round) => round.bare),
    figure("chunk p50, real ledger (C)", "ms", (round) => round.real),
    figure(`${bare} in its place (B - A)`, "ms", (round) => round.bare - round["at once"]),
    figure(beyond, "ms", (round) => round.real - round.bare + ownMs, { limit: OVERHEAD_MS_MAX }),
  ];
}
