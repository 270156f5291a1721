/** An engine in this process, for commands and measurements without a service. */
import { type Engine, LOAD_MS_MAX } from "../engine/engine.ts";
import { openEngine } from "../engine/native.ts";
import { systemClock } from "../std/clock.ts";
import { Problem } from "../std/problem.ts";

/** Opens an engine for the time of `work`. */
export async function withEngine<T>(
  decodeThreads: number,
  work: (engine: Engine) => Promise<T | Problem>,
): Promise<T | Problem> {
  const engine = await openEngine({ decodeThreads });
  if (engine instanceof Problem) return engine;
  // The engine's callback does not keep the process alive while a model loads or computes; a timer does, again and again.
  let release = () => {};
  const stay = () => {
    release = systemClock.after(LOAD_MS_MAX, stay);
  };
  stay();
  try {
    return await work(engine);
  } finally {
    await engine.close();
    release();
  }
}
