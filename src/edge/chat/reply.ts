/** The response of the robot route as JSON text, put together from parts that are printed once. */
import type { Manifest } from "../../bundle/manifest.ts";
import type { StationMicros } from "../../engine/engine.ts";
import type { Chunk } from "./run.ts";

/** The stations of `timing_ms`, in the order of the work. */
export const STATIONS = [
  "decode",
  "queue",
  "prefill",
  "denoise",
  "encode",
] as const satisfies readonly (keyof StationMicros)[];

export interface ReplyFacts {
  readonly generationId: string;
  /** Unix seconds. */
  readonly created: number;
  readonly manifest: Manifest;
}

interface Usage {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
}

/** The answer to a request without images. */
export function describeText(facts: ReplyFacts, description: string): string {
  return completion(facts, JSON.stringify(description), { promptTokens: 0, cachedTokens: 0, completionTokens: 0 });
}

/** The answer with an action chunk. */
export function chunkText(facts: ReplyFacts, chunk: Chunk): string {
  const { promptTokens, cachedTokens, rowsComputed } = chunk;
  const { head, tail } = chunkAround(facts.manifest, chunk);
  // The rows hold nothing that a JSON string must escape, so only the small parts around them are printed twice.
  const content = `"${escaped(head)}${chunk.rowsText}${escaped(tail)}"`;
  return completion(facts, content, { promptTokens, cachedTokens, completionTokens: rowsComputed });
}

/** Headers that are known before the model has run. */
export function replyHeaders({ generationId, manifest }: ReplyFacts, step?: number | null): Record<string, string> {
  return {
    "x-generation-id": generationId,
    ...(step === undefined || step === null ? {} : { "x-session-step": String(step) }),
    // Random weights say so wherever a user could meet them.
    ...(manifest.reference ? { "x-tendon-bundle": "reference" } : {}),
  };
}

/** Time at each station, for browsers and proxies. */
export function serverTiming(micros: StationMicros): Record<string, string> {
  return { "server-timing": STATIONS.map((station) => `${station};dur=${millis(micros[station])}`).join(", ") };
}

/** The action chunk as JSON text, before and after its rows. */
function chunkAround(manifest: Manifest, chunk: Chunk): { head: string; tail: string } {
  const { columns, hz, space } = manifest.action;
  const before = {
    session_id: chunk.sessionId,
    step: chunk.step,
    dt: 1 / hz,
    action_dim: columns.length,
    action_space: space,
  };
  const after = {
    next_frames_per_camera: chunk.nextFramesPerCamera,
    timing_ms: timing(chunk.micros),
    ...(chunk.cacheReset ? { cache_reset: true } : {}),
  };
  return {
    head: `${JSON.stringify(before).slice(0, -1)},"actions":`,
    tail: `,${JSON.stringify(after).slice(1)}`,
  };
}

/** `content` is a JSON string literal. */
function completion(facts: ReplyFacts, content: string, usage: Usage): string {
  const { promptTokens, cachedTokens, completionTokens } = usage;
  return (
    `{"id":"${facts.generationId}","object":"chat.completion","created":${facts.created},` +
    `"model":${JSON.stringify(facts.manifest.id)},` +
    `"choices":[{"index":0,"message":{"role":"assistant","content":${content}},"finish_reason":"stop"}],` +
    `"usage":{"prompt_tokens":${promptTokens},"prompt_tokens_details":{"cached_tokens":${cachedTokens}},` +
    `"completion_tokens":${completionTokens},"total_tokens":${promptTokens + completionTokens}}}`
  );
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
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
function millis(micros: number): number {
  return Math.round(micros) / 1000;
}
