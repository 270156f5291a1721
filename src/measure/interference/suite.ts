/**
 * `tendon bench interference`: does a robot feel what else its node does: uploads, streams of language models, people who sign in, paid requests, pages?
 *
 * In each round one fresh service, one robot in a closed loop: alone, alone again, and beside each kind of work. All share the machine's
 * cores, also the program that sends the work, so a figure holds what that takes as well. Every second round goes backwards. Outside of the window: the first requests of
 * each service, and the moment in which the work begins.
 */

import { sleep, systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { type Child, startChild } from "../child.ts";
import { Histogram } from "../histogram.ts";
import { providerTables } from "../llm/provider.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { Robots } from "../load/robots.ts";
import { SAMPLE_MODEL } from "../sample/observation.ts";
import { type BenchTarget, type Measurement, scenesFor } from "../target.ts";
import { KIND_NAMES, type KindName, STREAM } from "./kinds.ts";
import { Neighbors, type Work } from "./neighbors.ts";

export const ARM_SECONDS = 5;
const WARMUP_REQUESTS = 300;
/** Also without work, so that all arms have the same pause. */
const SETTLE_MS = 500;

const ALONE = ["alone", "alone again"] as const;
type Arm = (typeof ALONE)[number] | KindName;
const ARMS: readonly Arm[] = [...ALONE, ...KIND_NAMES];

interface Round {
  readonly latency: Histogram;
  /** Undefined when the robot was alone. */
  readonly work: Work | undefined;
}

export interface InterferenceMeasurement extends Measurement {
  readonly arm: Arm;
  readonly rounds: readonly Round[];
  /** Over all rounds. */
  readonly latency: Histogram;
  /** Of each round: the robot's p99 in this arm over the mean of that of both arms alone. */
  readonly p99Ratios: readonly number[];
}

export interface InterferencePlan extends BenchTarget {
  readonly rounds: number;
  readonly armSeconds?: number;
  readonly warmupRequests?: number;
  readonly settleMs?: number;
}

export async function runInterferenceSuite(plan: InterferencePlan): Promise<InterferenceMeasurement[] | Problem> {
  const scenes = await scenesFor(plan);
  if (scenes instanceof Problem) return scenes;
  const opened = await Neighbors.open();
  if (opened instanceof Problem) return opened;
  const { neighbors, providerOrigin } = opened;
  try {
    const measurements: InterferenceMeasurement[] = [];
    for (const device of plan.devices) {
      const rounds: Map<Arm, Round>[] = [];
      let reference = false;
      for (let round = 1; round <= plan.rounds; round += 1) {
        await plan.progress?.(`measuring: device ${device}, round ${round} of ${plan.rounds}`);
        const configuration = providerTables(providerOrigin, STREAM);
        const child = await startChild({ device, modelsDir: plan.models, configuration });
        if (child instanceof Problem) return child;
        const sender = new Robots(child.service, scenes, "bench");
        // Every second round backwards: a service that still gets faster, or a machine that gets slower, does so for all arms.
        const arms = round % 2 === 1 ? ARMS : ARMS.toReversed();
        const done = await measuredRound({ child, sender, neighbors, arms }, plan).finally(() => child.stop());
        if (done instanceof Problem) return done;
        rounds.push(done);
        reference ||= sender.reference;
      }
      measurements.push(...ARMS.map((arm) => measurementOf(arm, rounds, { device, reference })));
    }
    return measurements;
  } finally {
    await neighbors.close();
  }
}

interface Stage {
  readonly child: Child;
  readonly sender: Robots;
  readonly neighbors: Neighbors;
  /** In the order of this round. */
  readonly arms: readonly Arm[];
}

async function measuredRound(
  { child, sender, neighbors, arms }: Stage,
  plan: InterferencePlan,
): Promise<Map<Arm, Round> | Problem> {
  const cold = await sender.warmUp(1, plan.warmupRequests ?? WARMUP_REQUESTS);
  if (cold !== undefined) return await child.explain(cold);
  const rounds = new Map<Arm, Round>();
  for (const arm of arms) {
    const kind = arm === "alone" || arm === "alone again" ? undefined : arm;
    const started = kind && (await neighbors.start(kind, { ...child.service, prefix: `beside-${kind}` }));
    if (started !== undefined) return started;
    await sleep(systemClock, plan.settleMs ?? SETTLE_MS);
    const load = { clock: systemClock, robots: 1, seconds: plan.armSeconds ?? ARM_SECONDS, sender };
    const figures = await closedLoop(load);
    const work = kind && (await neighbors.stop());
    if (figures instanceof Problem) return await child.explain(figures);
    if (work instanceof Problem) return work;
    rounds.set(arm, { latency: figures.latency, work });
  }
  return rounds;
}

function measurementOf(
  arm: Arm,
  rounds: readonly ReadonlyMap<Arm, Round>[],
  about: Pick<Measurement, "device" | "reference">,
): InterferenceMeasurement {
  const latency = new Histogram();
  const own = rounds.flatMap((round) => round.get(arm) ?? []);
  for (const round of own) latency.merge(round.latency);
  const p99 = (round: ReadonlyMap<Arm, Round>, of: Arm): number => round.get(of)?.latency.percentile(99) ?? Number.NaN;
  const p99Ratios = rounds.map((round) => (2 * p99(round, arm)) / (p99(round, "alone") + p99(round, "alone again")));
  return { ...about, model: SAMPLE_MODEL, robots: 1, arm, rounds: own, latency, p99Ratios };
}
