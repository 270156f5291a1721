/** `tendon bench chunk`: where the time of a chunk goes. Closed loop: a robot waits for its chunk before it sends again. */

import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../../cli/sample.ts";
import { Problem } from "../../error/problem.ts";
import { systemClock } from "../../std/clock.ts";
import { type BenchTarget, measureEach, scenesFor } from "../target.ts";
import { measure } from "./load.ts";
import type { Measurement } from "./report.ts";

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
  const { chunks } = plan;
  return await measureEach(plan, `chunks ${chunks}`, async (service, robots) => {
    const done = await measure({
      service,
      model: SAMPLE_MODEL,
      robots,
      chunks,
      warmup: WARMUP_CHUNKS,
      scenes,
      instruction: SAMPLE_INSTRUCTION,
      state: SAMPLE_STATE,
      sessionPrefix: `bench-${systemClock.unixMs()}`,
    });
    return done instanceof Problem ? done : { ...done, chunks };
  });
}
