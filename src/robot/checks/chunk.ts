/** The parts of an answer that every transport prints: the action chunk and its usage. */

import { rowsText } from "../../std/float32.ts";
import { type Answer, type AnswerHead, bytesOf } from "../answer.ts";

/** How a chunk carries its rows: as JSON, or as bytes that follow it. */
export type ActionsFormat = "json" | "f32";

/** The action chunk as JSON text, with `lead`'s fields first. With `f32` it says how many rows there are. */
export function chunkText({ head, rows }: Answer, format: ActionsFormat = "json", lead: object = {}): string {
  const { session_id, step, dt, action_dim, action_space, next_frames_per_camera, timing_ms } = head;
  const before = JSON.stringify({ ...lead, session_id, step, dt, action_dim, action_space });
  // JSON leaves out what is undefined.
  const { cache_reset, clamped } = head;
  const after = JSON.stringify({ next_frames_per_camera, timing_ms, cache_reset, clamped });
  const count = rows.length / action_dim;
  const actions = format === "json" ? `"actions":${rowsText(rows, count, action_dim)}` : `"rows":${count}`;
  return `${before.slice(0, -1)},${actions},${after.slice(1)}`;
}

/** The message that follows a chunk with `f32`: little-endian float32, row-major. */
export function rowsBytes({ rows }: Answer): Uint8Array {
  return bytesOf(rows);
}

/** The `usage` object; cached tokens are part of the prompt's. */
export function usageObject({ prompt_tokens, cached_tokens, completion_tokens }: AnswerHead["usage"]) {
  return {
    prompt_tokens,
    prompt_tokens_details: { cached_tokens },
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
  };
}
