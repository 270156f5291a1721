/** `tendon bench chunk`: where the time of a chunk goes. Closed loop: a robot waits for its chunk before it sends again. */
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { sampleOf } from "../sample/observation.ts";
import { drawnScenes } from "../sample/scenes.ts";
import { type BenchTarget, type Measurement, measureEach } from "../target.ts";
import { type ChunkTimes, driveChunks } from "./load.ts";

/** Chunks of each robot that are not measured: connections, caches and the client's compiler warm up. */
const WARMUP_CHUNKS = 10;

export interface ChunkMeasurement extends Measurement, ChunkTimes {
  readonly chunks: number;
}

/** All measurements of the plan, one after the other; `chunks` are those of one, over all robots. */
export async function runChunkSuite(
  plan: BenchTarget & { readonly chunks: number },
): Promise<ChunkMeasurement[] | Problem> {
  const { chunks } = plan;
  return await measureEach(plan, `chunks ${chunks}`, async (service, robots) => {
    const sample = await sampleOf(service, plan.model);
    if (sample instanceof Problem) return sample;
    const scenes = await drawnScenes(undefined, sample.frameSize);
    if (scenes instanceof Problem) return scenes;
    const sessionPrefix = `bench-${systemClock.unixMs()}`;
    const done = await driveChunks({ service, robots, chunks, warmup: WARMUP_CHUNKS, scenes, sessionPrefix, sample });
    return done instanceof Problem ? done : { ...done, chunks };
  });
}
