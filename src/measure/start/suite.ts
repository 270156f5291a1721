/**
 * `tendon bench start`: how long from starting the process until it serves, the first time and later, and is the first request slower than
 * the hundredth?
 *
 * In each round the service starts twice in an empty home folder of its own: cold, when an executable unpacks its libraries and bundles,
 * and warm, when it finds them there. After each start one robot sends its observations one after the other. Outside of the window:
 * the disk's own cache, which is warm both times.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { startChild } from "../child.ts";
import { Robots } from "../load/robots.ts";
import { SAMPLE_MODEL } from "../sample/observation.ts";
import type { Scenes } from "../sample/scenes.ts";
import { type BenchTarget, type Measurement, scenesFor } from "../target.ts";

/** Requests after each start: the first is compared with the last ones. */
const REQUESTS = 100;
const STARTS = ["cold", "warm"] as const;

export interface StartMeasurement extends Measurement {
  readonly start: (typeof STARTS)[number];
  readonly rounds: number;
  /** Of each round: from the start of the process to its ready line, all models loaded. */
  readonly readyMs: readonly number[];
  /** Of each round, of each request in its order. */
  readonly requestMs: readonly (readonly number[])[];
}

interface Started {
  readonly readyMs: number;
  readonly requestMs: readonly number[];
  readonly reference: boolean;
}

export async function runStartSuite(
  plan: BenchTarget & { readonly rounds: number; readonly requests?: number },
): Promise<StartMeasurement[] | Problem> {
  const scenes = await scenesFor(plan);
  if (scenes instanceof Problem) return scenes;
  const measurements: StartMeasurement[] = [];
  for (const device of plan.devices) {
    const rounds: Record<StartMeasurement["start"], Started[]> = { cold: [], warm: [] };
    for (let round = 1; round <= plan.rounds; round += 1) {
      await plan.progress?.(`measuring: device ${device}, round ${round} of ${plan.rounds}`);
      const both = await coldAndWarm(device, plan, scenes);
      if (both instanceof Problem) return both;
      for (const start of STARTS) rounds[start].push(both[start]);
    }
    measurements.push(
      ...STARTS.map((start) => ({
        ...{ model: SAMPLE_MODEL, device, robots: 1, start, rounds: plan.rounds },
        reference: rounds[start].some(({ reference }) => reference),
        readyMs: rounds[start].map(({ readyMs }) => readyMs),
        requestMs: rounds[start].map(({ requestMs }) => requestMs),
      })),
    );
  }
  return measurements;
}

type StartPlan = BenchTarget & { readonly requests?: number };

async function coldAndWarm(
  device: string,
  plan: StartPlan,
  scenes: Scenes,
): Promise<Record<StartMeasurement["start"], Started> | Problem> {
  const folder = await mkdtemp(join(tmpdir(), "tendon-bench-start-"));
  try {
    const home = join(folder, "home");
    await mkdir(home);
    const cold = await started(device, plan, scenes, home);
    if (cold instanceof Problem) return cold;
    const warm = await started(device, plan, scenes, home);
    return warm instanceof Problem ? warm : { cold, warm };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function started(device: string, plan: StartPlan, scenes: Scenes, home: string): Promise<Started | Problem> {
  const environment = { HOME: home, XDG_CACHE_HOME: join(home, ".cache") };
  const child = await startChild({ device, modelsDir: plan.models, environment });
  if (child instanceof Problem) return child;
  try {
    const sender = new Robots(child.service, scenes, "bench-start");
    const requestMs: number[] = [];
    for (let request = 0; request < (plan.requests ?? REQUESTS); request += 1) {
      const sentMs = systemClock.monotonicMs();
      const refusal = await sender.send(0);
      if (refusal !== undefined) return await child.explain(refusal.problem);
      requestMs.push(systemClock.monotonicMs() - sentMs);
    }
    return { readyMs: child.readyMs, requestMs, reference: sender.reference };
  } finally {
    await child.stop();
  }
}
