/**
 * Chunks of a loaded model without a service around it, station by station, alone and in batches.
 *
 * A replica takes what waits for it as one batch. So that a batch of a known size forms, one observation more keeps it busy while the
 * others are handed over; it is not counted. Only rounds whose observations did run together are.
 */
import type { Engine, Inference, Model } from "../../engine/engine.ts";
import { present } from "../../std/assert.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { begun, decoded, ended, type FrameSet, type Inferred, inferred, type Observed } from "../inference.ts";

/** Milliseconds of one batch. */
export interface Round {
  /** Processor time on the host for the frames of one observation. */
  readonly decode: number;
  /** Time since the batch's begin: tensors filled and copied, prefill or extend. */
  readonly prefill: number;
  readonly denoise: number;
  /** One observation's rows into robot units. */
  readonly encode: number;
  /** Time between the batch's begin and the end of its last observation. */
  readonly model: number;
  /** The device's part of `prefill` and `denoise` by its events, and the rest of `model`; absent where it has no events. */
  readonly onDevice?: { readonly prefill: number; readonly denoise: number; readonly host: number } | undefined;
}

export interface Rounds {
  readonly rounds: readonly Round[];
  /** Observations that ran together; below what was asked for on a device that runs them one by one. */
  readonly batch: number;
  /** Allocations of the native library for each observation, those of decoding included. */
  readonly allocationsPerChunk: number;
}

/** Attempts at a batch for each round that is wanted, before the size counts as one that does not form. */
const ATTEMPTS = 3;
/** Milliseconds between the observation ahead and the others, each tried until batches form: how soon a replica takes what waits depends on the machine. */
const PAUSES_MS = [0, 0.1, 0.3, 1] as const;
/** Rounds that are not counted: these at least, and until this number in a row have allocated nothing, for each thread that decodes allocates for its first frame. */
const WARM_ROUNDS = 2;
const QUIET_ROUNDS = 5;
const WARM_ROUNDS_MAX = 50;

/** `count` batches of `size` observations of a model without memory. */
export async function batchRounds(
  engine: Engine,
  model: Model,
  observed: Observed,
  { size, count }: { readonly size: number; readonly count: number },
): Promise<Rounds | Problem> {
  const warmUp = new WarmUp(engine);
  while (!warmUp.isOver()) {
    const done = await together(model, observed, size, 0);
    if (done instanceof Problem) return done;
    warmUp.ended();
  }
  const rounds: Round[] = [];
  let [largest, unformed] = [0, 0];
  const before = engine.stats();
  for (let attempt = 0; rounds.length < count && attempt < ATTEMPTS * count; attempt += 1) {
    const done = await together(model, observed, size, PAUSES_MS[unformed % PAUSES_MS.length] ?? 0);
    if (done instanceof Problem) return done;
    largest = Math.max(largest, ...done.map(({ result }) => result.batch));
    if (done.every(({ result }) => result.batch === size)) rounds.push(roundOf(done));
    else unformed += 1;
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
  const warmUp = new WarmUp(engine);
  let before = engine.stats();
  for (let step = 0; rounds.length < count; step += 1) {
    const counted = warmUp.isOver();
    const done = await inferred(model, laterOf(episode, step), { turn: 0, step, slot: 0 });
    if (done instanceof Problem) return done;
    if (counted && !done.result.cacheReset) rounds.push(roundOf([done]));
    if (counted) continue;
    warmUp.ended();
    before = engine.stats();
  }
  model.sessionDrop(0);
  return { rounds, batch: 1, allocationsPerChunk: allocated(engine, before) };
}

/** Which rounds are the first, that are not counted. */
class WarmUp {
  private rounds = 0;
  private quiet = 0;
  private allocations: number;

  constructor(private readonly engine: Engine) {
    this.allocations = engine.stats().allocations;
  }

  isOver(): boolean {
    return this.rounds >= WARM_ROUNDS && (this.quiet >= QUIET_ROUNDS || this.rounds >= WARM_ROUNDS_MAX);
  }

  /** A round has ended. */
  ended(): void {
    const { allocations } = this.engine.stats();
    this.quiet = allocations === this.allocations ? this.quiet + 1 : 0;
    this.allocations = allocations;
    this.rounds += 1;
  }
}

/** The first of an episode, then the others again and again. */
export function laterOf(episode: readonly Observed[], step: number): Observed {
  const later = episode.length - 1;
  const at = step === 0 || later === 0 ? 0 : 1 + ((step - 1) % later);
  return present(episode[at], "an observation of the episode");
}

function allocated(engine: Engine, before: { readonly allocations: number; readonly chunks_run: number }): number {
  const now = engine.stats();
  return (now.allocations - before.allocations) / Math.max(1, now.chunks_run - before.chunks_run);
}

async function together(
  model: Model,
  observed: Observed,
  size: number,
  pauseMs: number,
): Promise<Inferred[] | Problem> {
  const ahead = size > 1 ? 1 : 0;
  const framed: FrameSet[] = [];
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
    if (turn === 0 && ahead > 0) spin(pauseMs);
  }
  const ends: Inferred[] = [];
  for (const outcome of await Promise.all(runs.map(ended))) {
    if (outcome instanceof Problem) return outcome;
    ends.push(outcome);
  }
  return ends.slice(ahead);
}

/** Waits on this thread, since a timer has whole milliseconds. */
function spin(ms: number): void {
  const until = systemClock.monotonicMs() + ms;
  while (systemClock.monotonicMs() < until);
}

/** The graphs ran once for all. */
function roundOf(batch: readonly Inferred[]): Round {
  const most = (ms: (one: Inferred) => number) => Math.max(...batch.map(ms));
  const { prefill, denoise, device } = present(batch[0], "an observation of the batch").result.micros;
  const model = most(({ run }) => run.modelMs);
  return {
    ...{ prefill: prefill / 1000, denoise: denoise / 1000, model },
    decode: most(({ run }) => run.decodeMs),
    encode: most(({ result }) => result.micros.encode / 1000),
    onDevice: device && {
      ...{ prefill: device.prefill / 1000, denoise: device.denoise / 1000 },
      host: model - (device.prefill + device.denoise) / 1000,
    },
  };
}
