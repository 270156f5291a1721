/** The parts of an action chunk that every transport prints. */
import type { Manifest } from "../../bundle/manifest.ts";
import type { STATIONS, StationMicros } from "../../engine/engine.ts";
import type { Chunk } from "../../robot/attempt.ts";

interface Usage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
}

/** The fields before the rows, and those after them. */
export function chunkFields(manifest: Manifest, chunk: Chunk<unknown>): { before: object; after: object } {
  const { columns, hz, space } = manifest.action;
  return {
    before: {
      session_id: chunk.sessionId,
      step: chunk.step,
      dt: 1 / hz,
      action_dim: columns.length,
      action_space: space,
    },
    after: {
      next_frames_per_camera: chunk.nextFramesPerCamera,
      timing_ms: timing(chunk.micros),
      ...(chunk.cacheReset ? { cache_reset: true } : {}),
    },
  };
}

/** The `usage` object. */
export function usageObject({ promptTokens, cachedTokens, completionTokens }: Usage): object {
  return {
    prompt_tokens: promptTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** What the chunk is charged for: every row that the model computed. */
export function chunkUsage({ promptTokens, cachedTokens, rowsComputed }: Chunk<unknown>): Usage {
  return { promptTokens, cachedTokens, completionTokens: rowsComputed };
}

function timing(micros: StationMicros): Record<(typeof STATIONS)[number], number> {
  const { decode, queue, prefill, denoise, encode } = micros;
  return {
    decode: millis(decode),
    queue: millis(queue),
    prefill: millis(prefill),
    denoise: millis(denoise),
    encode: millis(encode),
  };
}

/** Milliseconds with microsecond resolution. */
export function millis(micros: number): number {
  return Math.round(micros) / 1000;
}
