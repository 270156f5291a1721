/**
 * Chunks of a loaded model without a service around it, station by station, alone and in batches.
 *
 * A replica takes what waits for it as one batch. So that a batch of a known size forms, one observation more keeps it busy while the
 * others are handed over; it is not counted. Only rounds whose observations did run together are.
 */
import type { Engine, Frame, Inference, Model } from "../../engine/engine.ts";
import { Fault } from "../../engine/fault.ts";
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";
import type { Observed } from "./observations.ts";

/** Milliseconds of one batch. */
export interface Round {
  /** Processor time on the host for the frames of one observation. */
  readonly decode: number;
  /** From the batch's begin: tensors filled and copied, prefill or extend. */
  readonly prefill: number;
  readonly denoise: number;
  /** Of one observation: rows into robot units. */
  readonly encode: number;
  /** From the batch's begin to the end of its last observation. */
  readonly model: number;
  /** Of `prefill` and `denoise` what the device was at, by its own events, and of `model` all else; absent where it does not tell. */
  readonly onDevice?: { readonly prefill: number; readonly denoise: number; readonly host: number } | undefined;
}

export interface Rounds {
  readonly rounds: readonly Round[];
  /** Observations that ran together; below what was asked for on a device that runs them one by one. */
  readonly batch: number;
  /** Of the native library, for each observation, those that decoding makes included. */
  readonly allocationsPerChunk: number;
}

interface Place {
  readonly turn: number;
  readonly step: number;
  readonly slot?: number;
}

interface Framed {
  readonly observed: Observed;
  readonly frames: readonly Frame[];
}

/** Attempts at a batch for each round that is wanted, before the size counts as one that does not form. */
const ATTEMPTS = 3;
const WARM_ROUNDS = 2;

/** `count` batches of `size` observations of a model without memory. */
export async function batchRounds(
  engine: Engine,
  model: Model,
  observed: Observed,
  { size, count }: { readonly size: number; readonly count: number },
): Promise<Rounds | Problem> {
  for (let warm = 0; warm < WARM_ROUNDS; warm += 1) {
    const done = await together(model, observed, size);
    if (done instanceof Problem) return done;
  }
  const rounds: Round[] = [];
  let largest = 0;
  const before = engine.stats();
  for (let attempt = 0; rounds.length < count && attempt < ATTEMPTS * count; attempt += 1) {
    const done = await together(model, observed, size);
    if (done instanceof Problem) return done;
    largest = Math.max(largest, ...done.map(({ batch }) => batch));
    if (done.every(({ batch }) => batch === size)) rounds.push(roundOf(done));
    if (attempt === ATTEMPTS && largest < size) break;
  }
  return { rounds, batch: rounds.length > 0 ? size : largest, allocationsPerChunk: allocated(engine, before) };
}

/** `count` later observations of an episode in one slot of a model with memory; those that start its window anew are not counted. */
export async function episodeRounds(
  engine: Engine,
  model: Model,
  episode: readonly Observed[],
  count: number,
): Promise<Rounds | Problem> {
  const rounds: Round[] = [];
  let before = engine.stats();
  for (let step = 0; rounds.length < count; step += 1) {
    if (step === WARM_ROUNDS) before = engine.stats();
    const done = await inTurn(model, laterOf(episode, step), { turn: 0, step, slot: 0 });
    if (done instanceof Problem) return done;
    if (step >= WARM_ROUNDS && !done.reset) rounds.push(roundOf([done]));
  }
  model.sessionDrop(0);
  return { rounds, batch: 1, allocationsPerChunk: allocated(engine, before) };
}

/** The first of an episode, then the others again and again. */
export function laterOf(episode: readonly Observed[], step: number): Observed {
  const later = episode.length - 1;
  const at = step === 0 || later === 0 ? 0 : 1 + ((step - 1) % later);
  return present(episode[at], "an observation of the episode");
}

function allocated(engine: Engine, before: { readonly allocations: number; readonly chunksRun: number }): number {
  const now = engine.stats();
  return (now.allocations - before.allocations) / Math.max(1, now.chunksRun - before.chunksRun);
}

interface Ended extends Omit<Round, "onDevice"> {
  readonly device: { readonly prefill: number; readonly denoise: number } | undefined;
  readonly batch: number;
  readonly reset: boolean;
}

/** One observation by itself. */
async function inTurn(model: Model, observed: Observed, place: Place): Promise<Ended | Problem> {
  const framed = await decoded(model, observed, place.turn);
  if (framed instanceof Problem) return framed;
  const run = begun(model, framed, place);
  return run instanceof Problem ? run : await ended(run);
}

async function together(model: Model, observed: Observed, size: number): Promise<Ended[] | Problem> {
  const ahead = size > 1 ? 1 : 0;
  const framed: Framed[] = [];
  for (let turn = 0; turn < size + ahead; turn += 1) {
    const one = await decoded(model, observed, turn);
    if (one instanceof Problem) return one;
    framed.push(one);
  }
  const runs: Inference[] = [];
  for (const [turn, one] of framed.entries()) {
    const run = begun(model, one, { turn, step: 0 });
    if (run instanceof Problem) return run;
    runs.push(run);
  }
  const ends: Ended[] = [];
  for (const outcome of await Promise.all(runs.map(ended))) {
    if (outcome instanceof Problem) return outcome;
    ends.push(outcome);
  }
  return ends.slice(ahead);
}

async function decoded(model: Model, observed: Observed, turn: number): Promise<Framed | Problem> {
  const frames: Frame[] = [];
  for (const [at, jpeg] of observed.jpegs.entries()) {
    const frame = model.framePut(Math.floor(at / observed.perCamera), jpeg, turn);
    if (frame instanceof Fault) return new Problem(frame.message);
    frames.push(frame);
  }
  for (const fault of await Promise.all(frames.map((frame) => frame.decoded()))) {
    if (fault !== undefined) return new Problem(fault.message);
  }
  return { observed, frames };
}

function begun(model: Model, { observed, frames }: Framed, place: Place): Inference | Problem {
  const { instruction, state, seed } = observed;
  const run = model.observe({ frames, instruction, state, seed, ...place });
  return run instanceof Fault ? new Problem(run.message) : run;
}

async function ended(run: Inference): Promise<Ended | Problem> {
  const result = await run.result;
  if (result instanceof Fault) {
    run.abort();
    return new Problem(result.message);
  }
  run.commit();
  await run.released;
  const { prefill, denoise, encode, device } = result.micros;
  return {
    ...{ decode: run.decodeMs, prefill: prefill / 1000, denoise: denoise / 1000, encode: encode / 1000 },
    ...{ model: run.modelMs, batch: result.batch, reset: result.cacheReset },
    device: device && { prefill: device.prefill / 1000, denoise: device.denoise / 1000 },
  };
}

/** The graphs ran once for all. */
function roundOf(batch: readonly Ended[]): Round {
  const most = (name: "decode" | "encode" | "model") => Math.max(...batch.map((one) => one[name]));
  const { prefill, denoise, device } = present(batch[0], "an observation of the batch");
  const model = most("model");
  const onDevice = device && { ...device, host: model - device.prefill - device.denoise };
  return { prefill, denoise, decode: most("decode"), encode: most("encode"), model, onDevice };
}
