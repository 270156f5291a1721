/**
 * The answer to an observation, in no transport's form: a head and the rows as float32. JSON, events, socket messages and raw
 * rows are all made from it, for a first answer and for a replay alike, so that they cannot differ.
 */

import type { Usage } from "../charge/store/records.ts";
import type { ChunkResult } from "../engine/engine.ts";
import type { ObserveCommand } from "./command.ts";
import type { Ticket } from "./session/ticket.ts";
import type { NeutralAnswer } from "./store/records.ts";
import type { Timing } from "./timing.ts";

/** As it is stored, in the words of the wire. The keys of an object are printed in this order. */
export interface AnswerHead {
  /** The generation id. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
  /** The client's id, or the assigned `anon-` id. */
  readonly session_id: string;
  /** Zero-based chunk index in the session. */
  readonly step: number;
  /** Seconds between rows. */
  readonly dt: number;
  /** Values per row. */
  readonly action_dim: number;
  readonly action_space: string;
  readonly next_frames_per_camera: number;
  /** Milliseconds at microsecond resolution. */
  readonly timing_ms: Timing;
  /** The episode's memory window was started anew within the run. */
  readonly cache_reset?: true;
  /** Values, over all rows that the model computed, that were outside their column's range and were clamped; absent for none. */
  readonly clamped?: number;
  /** `completion_tokens`: every row that the model computed, also those that were not asked for. */
  readonly usage: {
    readonly prompt_tokens: number;
    readonly cached_tokens: number;
    readonly completion_tokens: number;
  };
}

export interface Answer {
  readonly head: AnswerHead;
  /** Row-major, `action_dim` values per row, only the rows that were asked for; in robot units, finite. */
  readonly rows: Float32Array;
}

/** The answer that a run's result becomes. Copies the rows, which the engine takes back; `timing` is asked for after that. */
export function answerOf(
  { served: { manifest }, rows: rowCount }: ObserveCommand,
  { sessionId, named, step }: Ticket,
  result: ChunkResult,
  generation: { readonly id: string; readonly created: number },
  timing: () => Timing,
): Answer {
  const { action, frames } = manifest;
  const rows = result.actions.slice(0, rowCount * result.columns);
  const { promptTokens, cachedTokens, completionTokens } = usageOf(result);
  const head: AnswerHead = {
    ...generation,
    model: manifest.id,
    session_id: sessionId,
    step,
    dt: 1 / action.hz,
    action_dim: action.columns.length,
    action_space: action.space,
    // A request without session_id is always the first of its own session.
    next_frames_per_camera: named ? frames.later : frames.first,
    timing_ms: timing(),
    ...(result.cacheReset ? { cache_reset: true } : {}),
    ...(result.clamped > 0 ? { clamped: result.clamped } : {}),
    usage: { prompt_tokens: promptTokens, cached_tokens: cachedTokens, completion_tokens: completionTokens },
  };
  return { head, rows };
}

/** What the run is charged for. */
export function usageOf({ promptTokens, cachedTokens, rows }: ChunkResult): Usage {
  return { promptTokens, cachedTokens, completionTokens: rows };
}

export function toStored({ head, rows }: Answer): NeutralAnswer {
  return { head: JSON.stringify(head), rows: bytesOf(rows) };
}

export function fromStored({ head, rows }: NeutralAnswer): Answer {
  // The store's bytes may begin anywhere in their buffer; float32 values must not.
  const aligned = rows.slice();
  return { head: JSON.parse(head) as AnswerHead, rows: new Float32Array(aligned.buffer) };
}

/** The rows as bytes, the `f32` form of a chunk. */
export function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
