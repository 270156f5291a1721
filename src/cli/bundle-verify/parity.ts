/** Computes a bundle's parity vectors on a device of this machine. */
import { type Bundle, LOAD_MS_MAX, type Model } from "../../engine/engine.ts";
import { openEngine } from "../../engine/native.ts";
import { Failure } from "../../error/core.ts";
import { Problem } from "../../error/problem.ts";
import { systemClock } from "../../std/clock.ts";

/** Where they came out right, and how far they were off. */
export type Computed = Pick<Model, "device" | "refused" | "parity">;

/** Loads the bundle as a start does; a problem says what the device computed wrongly. */
export async function computeParity(bundle: Bundle, device: string): Promise<Computed | Problem> {
  const engine = await openEngine({ decodeThreads: 1 });
  if (engine instanceof Problem) return engine;
  // The engine's callback does not keep the process alive while a model loads; a timer does.
  const release = systemClock.after(LOAD_MS_MAX, () => undefined);
  try {
    const model = await engine.load({ bundle, device, replicas: 1, threads: 1, slots: 1 });
    if (model instanceof Failure) return new Problem(model.message);
    const { device: chosen, refused, parity } = model;
    return { device: chosen, refused, parity };
  } finally {
    await engine.close();
    release();
  }
}
