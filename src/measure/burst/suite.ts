/**
 * `tendon bench burst`: robots that all ask at the same moment, after silence: how long until the first is answered, and until all are?
 *
 * Each has its session already, as robots of a cell that a bell starts. Outside of the window: opening the sessions, and the silence.
 */

import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { atOnce, type BurstFigures } from "../load/at-once.ts";
import { Robots } from "../load/robots.ts";
import { type BenchTarget, type Measurement, measureEach, scenesFor } from "../target.ts";

/** Long enough that every thread sleeps. */
export const SILENCE_MS = 500;
const WARMUP_REQUESTS = 100;

export interface BurstMeasurement extends Measurement, BurstFigures {
  readonly bursts: number;
}

export async function runBurstSuite(
  plan: BenchTarget & { readonly bursts: number; readonly silenceMs?: number; readonly warmupRequests?: number },
): Promise<BurstMeasurement[] | Problem> {
  const scenes = await scenesFor(plan);
  if (scenes instanceof Problem) return scenes;
  const { bursts, silenceMs = SILENCE_MS, warmupRequests = WARMUP_REQUESTS } = plan;
  return await measureEach(plan, `bursts ${bursts}`, async ({ service }, robots) => {
    const sender = new Robots(service, scenes, `bench-${systemClock.unixMs()}`);
    const cold = await sender.warmUp(robots, Math.max(2, Math.ceil(warmupRequests / robots)));
    if (cold !== undefined) return cold;
    const figures = await atOnce({ clock: systemClock, robots, silenceMs, bursts, sender });
    return figures instanceof Problem ? figures : { ...figures, bursts, reference: sender.reference };
  });
}
