/** The steps of an inference of a loaded model, for commands and measurements without a service: frames, observation, rows. */
import type { ChunkResult, Frame, Inference, Model } from "../engine/engine.ts";
import { Fault } from "../engine/fault.ts";
import { Problem } from "../std/problem.ts";

export interface Observed {
  /** Camera-major, oldest first. */
  readonly jpegs: readonly Uint8Array[];
  readonly state: Float32Array;
  readonly instruction: string;
  readonly seed: number;
}

/** The place of an observation among others. */
interface Place {
  readonly turn: number;
  readonly step: number;
  readonly slot?: number;
  /** Rows that the chunk continues, one after the other. */
  readonly prefix?: Float32Array;
}

export interface FrameSet {
  readonly observed: Observed;
  readonly frames: readonly Frame[];
}

export interface Inferred {
  readonly run: Inference;
  readonly result: ChunkResult;
}

/** One observation by itself. */
export async function inferred(model: Model, observed: Observed, place: Place): Promise<Inferred | Problem> {
  const framed = await decoded(model, observed, place.turn);
  if (framed instanceof Problem) return framed;
  const run = begun(model, framed, place);
  return run instanceof Problem ? run : await ended(run);
}

export async function decoded(model: Model, observed: Observed, turn: number): Promise<FrameSet | Problem> {
  const frames: Frame[] = [];
  for (const jpeg of observed.jpegs) {
    const frame = model.framePut(jpeg, turn);
    if (frame instanceof Fault) return new Problem(frame.message);
    frames.push(frame);
  }
  for (const fault of await Promise.all(frames.map((frame) => frame.decoded()))) {
    if (fault !== undefined) return new Problem(fault.message);
  }
  return { observed, frames };
}

export function begun(model: Model, { observed, frames }: FrameSet, place: Place): Inference | Problem {
  const { instruction, state, seed } = observed;
  const run = model.observe({ frames, instruction, state, seed, ...place });
  return run instanceof Fault ? new Problem(run.message) : run;
}

/** Its rows, once they are committed. */
export async function ended(run: Inference): Promise<Inferred | Problem> {
  const result = await run.result;
  if (result instanceof Fault) {
    run.abort();
    return new Problem(result.message);
  }
  run.commit();
  await run.released;
  return { run, result };
}
