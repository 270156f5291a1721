/** The rows of parity observations, computed by the engine on the CPU of this machine. */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Manifest, Parity } from "../../bundle/manifest.ts";
import type { ComputeRows } from "../../bundle/vectors.ts";
import type { Model, Observation } from "../../engine/engine.ts";
import { Fault } from "../../engine/fault.ts";
import { withEngine } from "../../measure/engine.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";

export const computeRows: ComputeRows = (bundle, vectors) =>
  withEngine(1, async (engine) => {
    const options = { device: "cpu", replicas: 1, threads: 1, slots: 1, unproved: true };
    const model = await engine.load({ bundle, ...options });
    if (model instanceof Problem) return model;
    const file = present(bundle.paths.get(bundle.manifest.parity.file), "the vectors of a bundle");
    const done: Parity["observations"] = [];
    for (const given of vectors.observations) {
      const continued = given.prefix && { prefix: done.at(-1)?.actions.slice(1, 1 + given.prefix.length) ?? [] };
      const frames = await Promise.all(given.frames.map((name) => readFile(join(dirname(file), name))));
      const actions = await chunk(model, bundle.manifest, { ...vectors, ...given, ...continued, frames });
      if (actions instanceof Fault) return new Problem(actions.message);
      done.push({ ...given, ...continued, actions });
    }
    return done;
  });

interface Given {
  readonly frames: readonly Uint8Array[];
  readonly instruction: string;
  readonly seed: number;
  readonly state: readonly number[];
  readonly step: number;
  readonly prefix?: readonly (readonly number[])[];
}

async function chunk(
  model: Model,
  { memory }: Manifest,
  { frames: jpegs, state, prefix, ...given }: Given,
): Promise<number[][] | Fault> {
  const frames: Observation["frames"][number][] = [];
  for (const jpeg of jpegs) {
    const frame = model.framePut(jpeg, 0);
    if (frame instanceof Fault) return frame;
    frames.push(frame);
  }
  const run = model.observe({
    ...{ frames, turn: 0, instruction: given.instruction, seed: given.seed, step: given.step },
    state: Float32Array.from(state),
    ...(prefix && { prefix: Float32Array.from(prefix.flat()) }),
    ...(memory && { slot: 0 }),
  });
  if (run instanceof Fault) return run;
  const result = await run.result;
  if (result instanceof Fault) {
    run.abort();
    return result;
  }
  const { actions, rows, columns } = result;
  const made = Array.from({ length: rows }, (_, row) => [...actions.subarray(row * columns, (row + 1) * columns)]);
  run.commit();
  await run.released;
  return made;
}
