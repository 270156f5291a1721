/** `tendon bench chunk`: where the time of a chunk goes. Closed loop: a robot waits for its chunk before it sends again. */
import { Problem } from "../error.ts";
import { systemClock } from "../std/clock.ts";
import type { Measurement } from "./bench-report.ts";
import { type BenchTarget, devicesOf, scenesFor, withService } from "./bench-service.ts";
import { measure } from "./load.ts";
import { printNote } from "./print.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "./sample.ts";

/** Chunks of each robot that are not measured: connections, caches and the compiler of the client warm up. */
const WARMUP_CHUNKS = 10;

interface ChunkPlan extends BenchTarget {
  /** Of one measurement, over all robots. */
  readonly chunks: number;
}

/** All measurements of the plan, one after the other. */
export async function runChunkSuite(plan: ChunkPlan): Promise<Measurement[] | Problem> {
  const scenes = await scenesFor(plan);
  if (scenes instanceof Problem) return scenes;
  const measurements: Measurement[] = [];
  for (const device of devicesOf(plan)) {
    for (const robots of plan.robots) {
      await printNote(`measuring: device ${device}, robots ${robots}, chunks ${plan.chunks}`);
      const done = await withService(plan, device, (service) =>
        measure({
          service,
          model: SAMPLE_MODEL,
          robots,
          chunks: plan.chunks,
          warmup: WARMUP_CHUNKS,
          scenes,
          instruction: SAMPLE_INSTRUCTION,
          state: SAMPLE_STATE,
          sessionPrefix: `bench-${systemClock.unixMs()}`,
        }),
      );
      if (done instanceof Problem) return done;
      measurements.push({ model: SAMPLE_MODEL, device, robots, chunks: plan.chunks, ...done });
    }
  }
  return measurements;
}
