/**
 * How much less time do prefill and denoise take with int8 weights, on one thread in a run and on two?
 *
 * The sample's model is built both ways and loaded once for each number of threads, into one engine. Chunks go through them in turns, so
 * that what else the machine does strikes all alike. The fastest twentieth is told beside the median: on a busy machine it is the work's.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBundle } from "../src/bundle/build.ts";
import { readBundle } from "../src/bundle/read.ts";
import type { Precision } from "../src/bundle/weights.ts";
import { computeRows } from "../src/cli/bundle/rows.ts";
import type { Engine, Model } from "../src/engine/engine.ts";
import { openEngine } from "../src/engine/native.ts";
import { drawnScenes, type Scenes } from "../src/measure/sample/scenes.ts";
import { percentile } from "../src/measure/stats.ts";
import { present } from "../src/std/assert.ts";
import { Failure } from "../src/std/failure.ts";
import { Problem } from "../src/std/problem.ts";
import { oneChunk } from "./engine.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const MODEL_DIR = join(import.meta.dir, "../models/molmoact2-yam");
const SIZES = { small: { chunks: 2, warmup: 1 }, full: { chunks: 400, warmup: 20 } } as const;
const PRECISIONS: readonly Precision[] = ["f32", "int8"];
const THREADS = [1, 2] as const;
const PERCENTS = [5, 50] as const;

interface Contender {
  readonly precision: Precision;
  readonly threads: number;
  readonly model: Model;
  /** Milliseconds of each chunk. */
  readonly prefill: number[];
  readonly denoise: number[];
}

export const int8: Proof = {
  name: "int8",
  question: "How much less time do prefill and denoise take with int8 weights, on one thread in a run and on two?",
  async run(size) {
    const scenes = await drawnScenes(4);
    if (scenes instanceof Problem) return scenes;
    const folder = await mkdtemp(join(tmpdir(), "tendon-int8-"));
    const engine = await openEngine({ decodeThreads: 1 });
    if (engine instanceof Problem) return engine;
    // Without a timer or socket Bun's event loop spins while it waits.
    const alive = setInterval(() => undefined, 1000);
    try {
      const all = await contenders(engine, folder);
      if (all instanceof Problem) return all;
      await inTurns(all, scenes, SIZES[size]);
      const { text, rows } = judged(figures(all));
      return { text, rows };
    } finally {
      clearInterval(alive);
      await engine.close();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function contenders(engine: Engine, folder: string): Promise<Contender[] | Problem> {
  const all: Contender[] = [];
  for (const precision of PRECISIONS) {
    const dir = join(folder, precision);
    const built = await buildBundle(MODEL_DIR, dir, precision, { computeRows });
    if (built instanceof Problem) return built;
    const bundle = await readBundle(dir);
    if (bundle instanceof Problem) return bundle;
    for (const threads of THREADS) {
      const model = await engine.load({ bundle, device: "cpu", replicas: 1, threads, slots: undefined });
      if (model instanceof Failure) return new Problem(model.message);
      all.push({ precision, threads, model, prefill: [], denoise: [] });
    }
  }
  return all;
}

async function inTurns(
  all: readonly Contender[],
  scenes: Scenes,
  { chunks, warmup }: { chunks: number; warmup: number },
): Promise<void> {
  for (let chunk = -warmup; chunk < chunks; chunk += 1) {
    const frames = present(scenes[(chunk + warmup) % scenes.length], "a scene");
    for (const { model, prefill, denoise } of chunk % 2 === 0 ? all : all.toReversed()) {
      const { micros } = await oneChunk(model, frames, Math.max(chunk, 0));
      if (chunk < 0) continue;
      prefill.push(micros.prefill / 1000);
      denoise.push(micros.denoise / 1000);
    }
  }
}

function figures(all: readonly Contender[]): Figure[] {
  const least = (values: readonly number[], percent: number) =>
    percentile(
      values.toSorted((a, b) => a - b),
      percent,
    );
  const both = ({ prefill, denoise }: Contender) => prefill.map((ms, at) => ms + present(denoise[at], "a chunk"));
  const rows: Figure[] = [];
  for (const one of all) {
    const name = `${one.precision}, ${one.threads} ${one.threads === 1 ? "thread" : "threads"}`;
    const exact = present(
      all.find(({ precision, threads }) => precision === "f32" && threads === one.threads),
      "float32",
    );
    for (const percent of PERCENTS) {
      const stations = { prefill: one.prefill, denoise: one.denoise, both: both(one) };
      for (const [station, values] of Object.entries(stations)) {
        rows.push({ measure: `${name}: ${station} p${percent}`, value: least(values, percent), unit: "ms" });
      }
      if (one === exact) continue;
      const value = least(both(one), percent) / least(both(exact), percent);
      rows.push({ measure: `${name}: both p${percent} against float32`, value, unit: "1" });
    }
  }
  return rows;
}
