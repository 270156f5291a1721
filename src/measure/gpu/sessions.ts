/**
 * How many episodes fit beside each other, and what the next one costs: a model with memory is loaded for more and more sessions, each of
 * which takes its turn, until the memory of the device, or what was asked for, is at its end.
 */

import { freemem } from "node:os";
import type { Manifest } from "../../bundle/manifest.ts";
import { deviceText } from "../../config/devices.ts";
import type { Engine, LoadOptions, Model } from "../../engine/engine.ts";
import { Failure } from "../../error/core.ts";
import { Problem } from "../../error/problem.ts";
import { median } from "../stats.ts";
import type { Observed } from "./observations.ts";
import { inTurn, laterOf } from "./rounds.ts";
import { cardNumber, cardState } from "./smi.ts";

export interface Sessions {
  readonly sessions: number;
  /** Of their memory, by the shapes of the graphs. */
  readonly memoryBytes: number;
  /** A later chunk, while the others wait. */
  readonly chunkMs: number;
}

interface Found {
  readonly counts: readonly Sessions[];
  /** Why there were no more. */
  readonly end: string;
}

const GROWTH = 4;
const VALUE_BYTES = { f32: 4, f16: 2, bf16: 2, i32: 4, i64: 8, u8: 1, bool: 1 } as const;
/** Observations of each session: one that finds an empty memory, one that reads it. */
const OBSERVATIONS = 2;

/** `options`: as the model is loaded, but for its slots. `most` sessions are tried. */
export async function sessionsOf(
  engine: Engine,
  options: LoadOptions,
  episode: readonly Observed[],
  most: number,
): Promise<Found | Problem> {
  const each = sessionBytes(options.bundle.manifest);
  const counts: Sessions[] = [];
  for (let sessions = 1; ; sessions = Math.min(most, sessions * GROWTH)) {
    const free = await freeBytes(deviceText(options.device));
    if (sessions * each > free) {
      return {
        counts,
        end: `${gigabytes(sessions * each)} for ${sessions} sessions are more than ${gigabytes(free)} that are free`,
      };
    }
    const model = await engine.load({ ...options, slots: sessions });
    if (model instanceof Failure) {
      if (counts.length === 0) return new Problem(model.message);
      return { counts, end: `${sessions} sessions were refused: ${model.message}` };
    }
    const chunkMs = await inTurns(model, episode, sessions);
    await model.unload();
    if (chunkMs instanceof Problem) return chunkMs;
    counts.push({ sessions, memoryBytes: sessions * each, chunkMs });
    if (sessions === most) return { counts, end: "as many as were asked for" };
  }
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
  const number = cardNumber(device);
  const state = number === undefined ? undefined : await cardState(number);
  return state === undefined ? freemem() / 2 : state.memoryFreeBytes;
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
