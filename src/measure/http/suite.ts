/**
 * `tendon bench http`: how long does a robot wait for its chunk over HTTP, and how many chunks a second come in time?
 *
 * Closed loops show what a service can do. Open loops at fixed rates show what robots get that do not wait for each other, also past
 * what the service can do. Outside of the window: taking pictures, and whatever happens before a request is due.
 */
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { closedLoop, openLoop } from "../load/loops.ts";
import { Robots } from "../load/robots.ts";
import type { LoadFigures } from "../load/tally.ts";
import { sampleOf } from "../sample/observation.ts";
import { drawnScenes } from "../sample/scenes.ts";
import { type BenchTarget, type Measurement, measureCases } from "../target.ts";

/** Requests a second of the open loops, if none is asked for: the last one is more than two cores can do. */
export const RATES = [10, 50, 100, 300];
/** Requests that are not measured, over all robots, and at least two of each. */
const WARMUP_REQUESTS = 100;
/** Robots that warm the service up for an open loop. */
const WARMUP_ROBOTS = 8;

interface HttpPlan extends BenchTarget {
  readonly seconds: number;
  /** Requests a second of the open loops. */
  readonly rates: readonly number[];
  readonly warmupRequests?: number;
}

export interface HttpMeasurement extends Measurement, LoadFigures {
  readonly loop: "closed" | "open";
  /** Requests that are due a second in an open loop. */
  readonly perSecond: number | undefined;
}

export async function runHttpSuite(plan: HttpPlan): Promise<HttpMeasurement[] | Problem> {
  const { seconds, robots, rates, warmupRequests = WARMUP_REQUESTS } = plan;
  const closed = robots.map((count) => ({ loop: "closed", robots: count, perSecond: undefined }) as const);
  const open = rates.map((perSecond) => ({ loop: "open", robots: WARMUP_ROBOTS, perSecond }) as const);
  const cases = [...closed, ...open].map((one) => ({ ...one, told: `${caseName(one)}, ${seconds} s` }));
  return await measureCases(plan, cases, async (service, one) => {
    const sample = await sampleOf(service, plan.model);
    if (sample instanceof Problem) return sample;
    const scenes = await drawnScenes(undefined, sample.frameSize);
    if (scenes instanceof Problem) return scenes;
    const sender = new Robots(service, scenes, `bench-${systemClock.unixMs()}`, false, sample);
    const cold = await sender.warmUp(one.robots, Math.max(2, Math.ceil(warmupRequests / one.robots)));
    if (cold !== undefined) return cold;
    const load = { clock: systemClock, seconds, sender };
    const { loop, perSecond, robots: count } = one;
    const figures =
      perSecond === undefined ? await closedLoop({ ...load, robots: count }) : await openLoop({ ...load, perSecond });
    if (figures instanceof Problem) return figures;
    return { robots: count, ...figures, loop, perSecond, reference: sender.reference };
  });
}

/** `closed loop, 8 robots`, `open loop, 100 requests/s`. */
function caseName({ loop, robots, perSecond }: Pick<HttpMeasurement, "loop" | "robots" | "perSecond">): string {
  if (perSecond !== undefined) return `${loop} loop, ${perSecond} requests/s`;
  return `${loop} loop, ${robots} ${robots === 1 ? "robot" : "robots"}`;
}
