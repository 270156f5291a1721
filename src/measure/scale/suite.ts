/**
 * `tendon bench scale`: what does a chunk cost as robots are added? Processor time of the service's process for each chunk, over all its
 * threads and of the event loop's thread alone, as the kernel counts it, and latency.
 *
 * Closed loops over HTTP: beyond a few robots the machine is full, and latency grows with their number; cost should not. Outside of the
 * window: the load generator's own processor time, the first requests of each service.
 */

import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { Robots } from "../load/robots.ts";
import type { LoadFigures } from "../load/tally.ts";
import { type ProcessorTime, processorTime, residentBytes, since } from "../process.ts";
import { type BenchTarget, type Measurement, measureCases, scenesFor, type Unnamed } from "../target.ts";

const WARMUP_REQUESTS = 100;

export interface ScaleMeasurement extends Measurement, LoadFigures {
  /** Of the service's process; undefined for a service that was already running. */
  readonly processor: ProcessorTime | undefined;
  /** At the end of the load, of the same process. */
  readonly residentBytes: number;
}

export async function runScaleSuite(
  plan: BenchTarget & { readonly seconds: number; readonly warmupRequests?: number },
): Promise<ScaleMeasurement[] | Problem> {
  const scenes = await scenesFor(plan);
  if (scenes instanceof Problem) return scenes;
  const { seconds, warmupRequests = WARMUP_REQUESTS } = plan;
  const cases = plan.robots.map((robots) => ({ robots, told: `robots ${robots}, ${seconds} s` }));
  return await measureCases(plan, cases, async ({ service, pid }, { robots }) => {
    const sender = new Robots(service, scenes, `bench-${systemClock.unixMs()}`);
    const cold = await sender.warmUp(robots, Math.max(2, Math.ceil(warmupRequests / robots)));
    if (cold !== undefined) return cold;
    const before = pid === undefined ? undefined : await processorTime(pid);
    const figures = await closedLoop({ clock: systemClock, robots, seconds, sender });
    if (figures instanceof Problem) return figures;
    const measured: Unnamed<ScaleMeasurement> = {
      ...figures,
      robots,
      processor: pid === undefined || before === undefined ? undefined : since(before, await processorTime(pid)),
      residentBytes: pid === undefined ? Number.NaN : await residentBytes(pid),
      reference: sender.reference,
    };
    return measured;
  });
}

/** 1, 2, 4 and so on, up to `most` and with it. */
export function doublings(most: number): number[] {
  const numbers: number[] = [];
  for (let robots = 1; robots < most; robots *= 2) numbers.push(robots);
  return [...numbers, most];
}
