/** An engine in this process, for commands and measurements without a service. */
import type { Engine } from "../engine/engine.ts";
import { openEngine } from "../engine/native.ts";
import { type Clock, systemClock } from "../std/clock.ts";
import { Problem } from "../std/problem.ts";

/** Any time that is long against the work of a timer. */
const HOLD_MS = 60_000;

/** Opens an engine for the time of `work`. */
export async function withEngine<T>(
  decodeThreads: number,
  work: (engine: Engine) => Promise<T | Problem>,
  clock: Pick<Clock, "after"> = systemClock,
): Promise<T | Problem> {
  const engine = await openEngine({ decodeThreads });
  if (engine instanceof Problem) return engine;
  // The engine's callback does not keep the process alive while a model loads or computes; a timer does, and is followed by another.
  let release = () => {};
  const hold = () => {
    release = clock.after(HOLD_MS, hold);
  };
  hold();
  try {
    return await work(engine);
  } finally {
    await engine.close();
    release();
  }
}
