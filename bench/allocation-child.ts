/**
 * The measured process of bench/memory.ts: `LD_PRELOAD=… bun bench/allocation-child.ts DEVICE CHUNKS`.
 * Prints one JSON object: heap allocations of our library and of ONNX Runtime, one number per chunk after warm-up.
 */
import { sampleFrames } from "../src/measure/sample/drawing.ts";
import { Problem } from "../src/std/problem.ts";
import { report } from "./child.ts";
import { oneChunk, openModel } from "./engine.ts";

const WARMUP_CHUNKS = 20;

async function main(device: string, chunks: number): Promise<object | Problem> {
  const frames = await sampleFrames(0);
  if (frames instanceof Problem) return frames;
  const open = await openModel({ decodeThreads: 2, device });
  if (open instanceof Problem) return open;
  for (let step = 0; step < WARMUP_CHUNKS; step++) await oneChunk(open, frames, step);
  const [library, runtime]: [number[], number[]] = [[], []];
  let before = open.engine.stats().allocations;
  for (let step = 0; step < chunks; step++) {
    await oneChunk(open, frames, step);
    const stats = open.engine.stats();
    library.push(stats.allocations - before);
    runtime.push(stats.runtime_allocations_last);
    before = stats.allocations;
  }
  await open.close();
  return { library, runtime };
}

await report(() => main(process.argv[2] ?? "echo", Number(process.argv[3] ?? "100")));
