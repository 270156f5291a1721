/** The rows of parity observations, computed by the engine on the CPU of this machine. */
import type { Parity } from "../../bundle/manifest.ts";
import type { ComputeRows } from "../../bundle/vectors.ts";
import { LOAD_MS_MAX } from "../../engine/engine.ts";
import { withEngine } from "../../measure/engine.ts";
import { observationsOf } from "../../measure/gpu/observations.ts";
import { inferred } from "../../measure/inference.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";

export const computeRows: ComputeRows = (bundle, { observations, seed }) =>
  withEngine(1, async (engine) => {
    // No robot waits: one thread may take minutes for a model of published size.
    const options = { device: "cpu", replicas: 1, threads: 1, slots: 1, unproved: true, inferenceMsMax: LOAD_MS_MAX };
    // There are no rows to be compared with yet: no case is played before, which would take as long as the rows.
    const stages = bundle.manifest.memory === null ? { stages: { out: "", cases: [] } } : {};
    const model = await engine.load({ bundle, ...options, ...stages });
    if (model instanceof Problem) return model;
    const observed = await observationsOf(bundle);
    const done: Parity["observations"] = [];
    for (const [at, given] of observations.entries()) {
      const continued = given.prefix && { prefix: done.at(-1)?.actions.slice(1, 1 + given.prefix.length) ?? [] };
      const made = await inferred(
        model,
        { ...present(observed[at], "an observation"), seed },
        {
          ...{ turn: 0, step: given.step, ...(bundle.manifest.memory && { slot: 0 }) },
          ...(continued && { prefix: Float32Array.from(continued.prefix.flat()) }),
        },
      );
      if (made instanceof Problem) return made;
      const { rows, columns, actions: values } = made.result;
      const actions = Array.from({ length: rows }, (_, row) => [
        ...values.subarray(row * columns, (row + 1) * columns),
      ]);
      done.push({ ...given, ...continued, actions });
    }
    return done;
  });
