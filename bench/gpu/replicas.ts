/**
 * Do two replicas of one GPU work side by side, and do captures of CUDA graphs survive what other models do there?
 * `bun bench/gpu/replicas.ts BUNDLE DEVICE CHUNKS WITHIN`, for bench/gpu.sh. It prints one JSON object. Rows may differ by WITHIN.
 *
 * One replica with one robot is the base, two replicas with two robots are compared with it. While these serve, a second model is
 * loaded on the device, captures its graphs, and is closed, several times.
 */
import { readBundle, withTolerance } from "../../src/bundle/read.ts";
import { gpuOptions } from "../../src/config/gpu.ts";
import type { LoadOptions, Model } from "../../src/engine/engine.ts";
import { observationsOf } from "../../src/measure/gpu/observations.ts";
import { type Inferred, inferred, type Observed } from "../../src/measure/inference.ts";
import { present } from "../../src/std/assert.ts";
import { Problem } from "../../src/std/problem.ts";
import { report } from "../child.ts";
import { openModel } from "../engine.ts";

const LOADS = 3;

async function main(dir: string, device: string, chunks: number, within: number): Promise<object | Problem> {
  const read = await readBundle(dir);
  if (read instanceof Problem) return read;
  const bundle = withTolerance(read, within);
  const observed = present((await observationsOf(bundle))[0], "an observation");
  const load = { bundle, device, gpu: gpuOptions({ cuda_graph: true }), threads: undefined, slots: 2 };
  const rates: number[] = [];
  for (const replicas of [1, 2]) {
    const open = await openModel({ ...load, replicas, decodeThreads: 2 });
    if (open instanceof Problem) return open;
    const rate = await chunksPerSecond(open.model, observed, replicas, chunks);
    if (rate instanceof Problem) return rate;
    rates.push(rate);
    if (replicas === 2) {
      const beside = { ...load, replicas: 1 };
      const [loads, served] = await Promise.all([
        loadAndClose(open.engine, beside),
        chunksPerSecond(open.model, observed, replicas, chunks),
      ]);
      if (loads instanceof Problem) return loads;
      if (served instanceof Problem) return served;
      const captured = [open.model.flow, ...loads].filter((flow) => flow === "captured").length;
      await open.close();
      return { one: rates[0], two: rates[1], captured, models: LOADS + 1 };
    }
    await open.close();
  }
  return new Problem("nothing was measured");
}

async function chunksPerSecond(model: Model, observed: Observed, robots: number, chunks: number) {
  const begun = performance.now();
  const robot = async (slot: number): Promise<Inferred | Problem | undefined> => {
    let last: Inferred | Problem | undefined;
    for (let step = 0; step < chunks && !(last instanceof Problem); step += 1) {
      last = await inferred(model, observed, { turn: slot, step, ...(model.slots > 0 ? { slot } : {}) });
    }
    return last;
  };
  const ends = await Promise.all(Array.from({ length: robots }, (_, slot) => robot(slot)));
  const failed = ends.find((end) => end instanceof Problem);
  return failed instanceof Problem ? failed : (1000 * robots * chunks) / (performance.now() - begun);
}

/** How each model runs its flow. */
async function loadAndClose(
  engine: { load(options: LoadOptions): Promise<Model | Problem> },
  options: LoadOptions,
): Promise<string[] | Problem> {
  const flows: string[] = [];
  for (let load = 0; load < LOADS; load += 1) {
    const model = await engine.load(options);
    if (model instanceof Problem) return model;
    flows.push(model.flow);
    await model.unload();
  }
  return flows;
}

const [dir = "", device = "cuda:0", chunks = "100", within = "0.2"] = process.argv.slice(2);
await report(() => main(dir, device, Number(chunks), Number(within)));
