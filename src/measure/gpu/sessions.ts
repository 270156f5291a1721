/**
 * How many episodes fit beside each other, and what the next one costs: a model with memory is loaded for more and more sessions, each of
 * which takes its turn, until the memory of the device, or what was asked for, is at its end. Four times as many each time; then the
 * limit between the last two is searched for.
 */

import { freemem } from "node:os";
import type { Manifest } from "../../bundle/manifest.ts";
import { deviceText } from "../../config/devices.ts";
import type { Engine, LoadOptions, Model } from "../../engine/engine.ts";
import { present } from "../../std/assert.ts";
import { Failure } from "../../std/failure.ts";
import { Problem } from "../../std/problem.ts";
import { median } from "../stats.ts";
import { cardOfDevice } from "./card-id.ts";
import type { Observed } from "./observations.ts";
import { inTurn, laterOf } from "./rounds.ts";
import { cardState } from "./smi.ts";

interface Sessions {
  readonly sessions: number;
  /** Of their memory, by the shapes of the graphs. */
  readonly memoryBytes: number;
  /** A later chunk, while the others wait. */
  readonly chunkMs: number;
}

export interface SessionFigures {
  /** The last is the limit that was found, or what was asked for. */
  readonly counts: readonly Sessions[];
  /** The least number that did not fit. */
  readonly refused: number | undefined;
  /** Why there were no more. */
  readonly end: string;
}

const GROWTH = 4;
/** Attempts between the last number that fits and the first that does not; from a factor of four, five are enough. */
const BISECTIONS = 6;
const NARROW = 0.1;
const VALUE_BYTES = { f32: 4, f16: 2, bf16: 2, i32: 4, i64: 8, u8: 1, bool: 1 } as const;
/** Observations of each session: one that finds an empty memory, one that reads it. */
const OBSERVATIONS = 2;

/** `options`: as the model is loaded, but for its slots. `most` sessions are tried. */
export async function sessionsOf(
  engine: Engine,
  options: LoadOptions,
  episode: readonly Observed[],
  most: number,
): Promise<SessionFigures | Problem> {
  const each = sessionBytes(options.bundle.manifest);
  const tried = (sessions: number, turns: number) => attempt(engine, { ...options, slots: sessions }, episode, turns);
  const counts: Sessions[] = [];
  const count = (sessions: number, chunkMs: number) => counts.push({ sessions, memoryBytes: sessions * each, chunkMs });
  let [fits, refused]: [number, Refused | undefined] = [0, undefined];
  for (let sessions = 1; refused === undefined && fits < most; sessions = Math.min(most, sessions * GROWTH)) {
    const done = await tried(sessions, sessions);
    if (done instanceof Refused) refused = done;
    else {
      fits = sessions;
      count(sessions, done);
    }
  }
  if (refused === undefined) return { counts, refused, end: "as many as were asked for" };
  if (fits === 0) return refused.at !== "memory" ? new Problem(refused.why) : { counts, refused: 1, end: refused.why };
  // Where they were refused before they ran, one session's turns tell whether so many fit: chunks of a large model take long.
  const isLoaded = refused.at === "run";
  for (let left = BISECTIONS; left > 0 && !isNarrow(fits, refused.sessions); left -= 1) {
    const middle = Math.floor((fits + refused.sessions) / 2);
    const done = await tried(middle, isLoaded ? middle : 1);
    if (done instanceof Refused) refused = done;
    else fits = middle;
    if (isLoaded && !(done instanceof Refused)) count(middle, done);
  }
  if (fits > present(counts.at(-1), "a count that fits").sessions) {
    const done = await tried(fits, fits);
    if (done instanceof Refused) refused = done;
    else count(fits, done);
  }
  return { counts, refused: refused.sessions, end: refused.why };
}

/** Between what fits and what does not there is no number, or less than a tenth. */
function isNarrow(fits: number, refused: number): boolean {
  return refused - fits <= Math.max(1, fits * NARROW);
}

/** So many sessions do not fit. */
class Refused {
  constructor(
    readonly sessions: number,
    readonly why: string,
    /** By the memory that is free, without a try; as the model was loaded; as a session took its turn. */
    readonly at: "memory" | "load" | "run",
  ) {}
}

/** A later chunk of each of the first `turns` sessions, in milliseconds. */
async function attempt(
  engine: Engine,
  options: LoadOptions & { readonly slots: number },
  episode: readonly Observed[],
  turns: number,
): Promise<number | Refused> {
  const { slots } = options;
  const needed = slots * sessionBytes(options.bundle.manifest);
  const free = await freeBytes(deviceText(options.device));
  if (needed > free) {
    const why = `${gigabytes(needed)} for ${counted(slots)} are more than ${gigabytes(free)} that are free`;
    return new Refused(slots, why, "memory");
  }
  const model = await engine.load(options);
  if (model instanceof Failure) return new Refused(slots, `${counted(slots)}: refused, ${model.message}`, "load");
  const chunkMs = await inTurns(model, episode, turns);
  await model.unload();
  if (!(chunkMs instanceof Problem)) return chunkMs;
  return new Refused(slots, `${counted(slots)}: loaded, and did not run, ${chunkMs.message}`, "run");
}

/** Of one episode's memory. */
function sessionBytes({ graphs }: Manifest): number {
  return graphs.denoise.inputs
    .filter(({ role }) => role === "memory")
    .reduce((sum, { dtype, shape }) => {
      const values = shape.reduce((size: number, dim) => size * (typeof dim === "number" ? dim : 1), 1);
      return sum + values * VALUE_BYTES[dtype];
    }, 0);
}

async function inTurns(model: Model, episode: readonly Observed[], sessions: number): Promise<number | Problem> {
  const later: number[] = [];
  for (let step = 0; step < OBSERVATIONS; step += 1) {
    for (let slot = 0; slot < sessions; slot += 1) {
      const done = await inTurn(model, laterOf(episode, step), { turn: slot, step, slot });
      if (done instanceof Problem) return done;
      if (step > 0) later.push(done.model);
    }
  }
  return median(later);
}

/** Of the device; on another than a card half of what the host has left, so that a measurement does not end the machine. */
async function freeBytes(device: string): Promise<number> {
  const id = (await cardOfDevice(device))?.id;
  const state = id === undefined ? undefined : await cardState(id);
  return state === undefined ? freemem() / 2 : state.memoryFreeBytes;
}

function counted(sessions: number): string {
  return `${sessions} session${sessions === 1 ? "" : "s"}`;
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
