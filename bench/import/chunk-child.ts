/**
 * Milliseconds of a chunk of a bundle in this process, from JPEG files to rows: `chunk-child.ts BUNDLE SECONDS MOST`. Two threads compute. It
 * prints `{"ms": X}`, the median of at most MOST chunks in SECONDS, at least one, after one that is not timed.
 */
import { readBundle } from "../../src/bundle/read.ts";
import { LOAD_MS_MAX } from "../../src/engine/engine.ts";
import { withEngine } from "../../src/measure/engine.ts";
import { observationsOf } from "../../src/measure/gpu/observations.ts";
import { inferred } from "../../src/measure/inference.ts";
import { median } from "../../src/measure/stats.ts";
import { present } from "../../src/std/assert.ts";
import { systemClock } from "../../src/std/clock.ts";
import { Problem } from "../../src/std/problem.ts";

const THREADS = 2;

const [dir = "", seconds, most] = Bun.argv.slice(2);
const bundle = await readBundle(dir);
if (bundle instanceof Problem) throw new Error(bundle.message);
const observed = present((await observationsOf(bundle))[0], "an observation");
const taken = await withEngine(1, async (engine) => {
  const options = { device: "cpu", replicas: 1, threads: THREADS, slots: 1, inferenceMsMax: LOAD_MS_MAX } as const;
  const model = await engine.load({ bundle, ...options });
  if (model instanceof Problem) return model;
  const times: number[] = [];
  let ends = 0;
  for (let chunk = 0; chunk < 2 || (chunk <= Number(most) && systemClock.monotonicMs() < ends); chunk += 1) {
    const begun = systemClock.monotonicMs();
    if (chunk === 1) ends = begun + 1000 * Number(seconds);
    const made = await inferred(model, observed, { turn: 0, step: 0 });
    if (made instanceof Problem) return made;
    if (chunk > 0) times.push(systemClock.monotonicMs() - begun);
  }
  return times;
});
if (taken instanceof Problem) throw new Error(taken.message);
process.stdout.write(`${JSON.stringify({ ms: median(taken) })}\n`);
