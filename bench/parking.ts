/**
 * What does it cost to park a session and to bring another one back?
 *
 * Two sessions take turns on one place of the device `echo`, which runs no graph: each observation parks one session and brings the other
 * back. Their memories are those of dreamzero's reference bundle with more tokens a frame, up to the size that a model of some billion
 * parameters has. The sessions' own rows are zeros, which are copied like any others. Times are the replica's, over all observations
 * after the window was full once. The wait is the observation's `queue`.
 */
import { join } from "node:path";
import sharp from "sharp";
import type { Manifest } from "../src/bundle/manifest.ts";
import type { Bundle } from "../src/bundle/read.ts";
import { readBundle } from "../src/bundle/read.ts";
import type { Model } from "../src/engine/engine.ts";
import { Fault } from "../src/engine/fault.ts";
import { median } from "../src/measure/stats.ts";
import { present } from "../src/std/assert.ts";
import { Problem } from "../src/std/problem.ts";
import { type OpenModel, openModel } from "./engine.ts";
import { type Figure, judged, MIB, type Proof } from "./proof.ts";

const BUNDLE = join(import.meta.dir, "../dist/models/dreamzero-astra-yam");
/** Tokens of a frame, times those of the bundle; how many observations of each session. */
const SIZES = {
  small: [{ factor: 1, steps: 8 }],
  full: [
    { factor: 1, steps: 400 },
    { factor: 16, steps: 200 },
    { factor: 256, steps: 40 },
  ],
} as const;
/** Observations until the window of the bundle is full. */
const FILLING = 4;

export const parking: Proof = {
  name: "parking",
  question: "What does it cost to park a session and bring another one back?",
  async run(size) {
    const bundle = await readBundle(BUNDLE);
    if (bundle instanceof Problem) return bundle;
    const picture = { create: { width: 64, height: 36, channels: 3, background: "#456" } } as const;
    const jpeg = new Uint8Array(await sharp(picture).jpeg().toBuffer());
    const rows: Figure[] = [];
    for (const { factor, steps } of SIZES[size]) {
      const load = { device: "echo", threads: 1, slots: 1, parkedBytesMax: "default", decodeThreads: 1 } as const;
      const open = await openModel({ ...load, bundle: enlarged(bundle, factor) });
      if (open instanceof Problem) return open;
      const measured = await measure(open, jpeg, steps);
      await open.close();
      if (measured instanceof Problem) return measured;
      rows.push(...measured);
    }
    return judged(rows);
  },
};

/** The bundle with `factor` times the tokens in each frame of its memory: a plan that only `echo` can load. */
function enlarged({ manifest, paths }: Bundle, factor: number): Bundle {
  const { memory, graphs } = manifest;
  const { tokens, ...rest } = present(memory ?? undefined, "a model with memory");
  const outputs = graphs.prefill.outputs.map((port) =>
    port.role === "block"
      ? { ...port, shape: port.shape.map((dim, at) => (at === port.shape.length - 2 ? Number(dim) * factor : dim)) }
      : port,
  );
  const prefill = { ...graphs.prefill, outputs };
  return {
    paths,
    manifest: { ...manifest, memory: { tokens: tokens * factor, ...rest }, graphs: { ...graphs, prefill } },
  };
}

/** Two sessions that alternate on one slot, after the window of each was full once. */
async function measure(
  { engine, model, manifest }: OpenModel,
  jpeg: Uint8Array,
  steps: number,
): Promise<Figure[] | Problem> {
  const waits: number[] = [];
  let movedBytes = 0;
  let before = engine.stats();
  for (let step = 0; step < steps; step += 1) {
    if (step === FILLING) before = engine.stats();
    for (const slot of [0, 1]) {
      const brought = engine.stats().parked_bytes_held;
      const waitedMs = await observe(model, manifest, jpeg, step, slot);
      if (waitedMs instanceof Problem) return waitedMs;
      if (step < FILLING) continue;
      waits.push(waitedMs);
      movedBytes += brought + engine.stats().parked_bytes_held;
    }
  }
  const after = engine.stats();
  const exchanges = after.sessions_parked - before.sessions_parked;
  const parkingMs = (after.parking_us - before.parking_us) / 1_000;
  const name = `${(model.sessionMemory.slotBytes / MIB).toFixed(1)} MiB at most`;
  return [
    { measure: `${name}: parked, the window full`, value: before.parked_bytes_held / MIB, unit: "MiB" },
    { measure: `${name}: moved by an exchange; mean`, value: movedBytes / exchanges / MIB, unit: "MiB" },
    { measure: `${name}: exchange of two sessions; mean`, value: (1_000 * parkingMs) / exchanges, unit: "us" },
    { measure: `${name}: speed`, value: movedBytes / parkingMs / 1e6, unit: "GB/s" },
    { measure: `${name}: queue p50`, value: median(waits), unit: "ms" },
  ];
}

/** One observation, kept; milliseconds from the last frame's tensor, or from `observe`, to the model's start. */
async function observe(
  model: Model,
  manifest: Manifest,
  jpeg: Uint8Array,
  step: number,
  slot: number,
): Promise<number | Problem> {
  const each = step === 0 ? manifest.frames.first : manifest.frames.later;
  const frames = [];
  for (let index = 0; index < each * manifest.cameras.length; index += 1) {
    const frame = model.framePut(jpeg, 0);
    if (frame instanceof Fault) return new Problem(frame.message);
    await frame.decoded();
    frames.push(frame);
  }
  const state = new Float32Array(manifest.state.columns.length);
  const run = model.observe({ frames, instruction: "fold", state, step, seed: 0, turn: 0, slot });
  if (run instanceof Fault) return new Problem(run.message);
  const result = await run.result;
  if (result instanceof Fault) return new Problem(result.message);
  run.commit();
  await run.released;
  return result.micros.queue / 1_000;
}
