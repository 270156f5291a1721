/** The response of the robot route as JSON text, put together from parts that are printed once. */
import type { Manifest } from "../../bundle/manifest.ts";
import type { StationMicros } from "../../engine/engine.ts";
import type { Reply } from "../answer.ts";
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
export function describeReply(facts: ReplyFacts, description: string): Reply {
  const usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
  return {
    status: 200,
    body: completion(facts, JSON.stringify(description), usage),
    headers: { "x-generation-id": facts.generationId, ...referenceHeader(facts.manifest) },
  };
}

/** The answer with an action chunk. */
export function chunkReply(facts: ReplyFacts, chunk: Chunk): Reply {
  const { promptTokens, cachedTokens, rowsComputed } = chunk;
  const { head, tail } = chunkAround(facts.manifest, chunk);
  // The rows hold nothing that a JSON string must escape, so only the small parts around them are printed twice.
  const content = `"${escaped(head)}${chunk.rowsText}${escaped(tail)}"`;
  return {
    status: 200,
    body: completion(facts, content, { promptTokens, cachedTokens, completionTokens: rowsComputed }),
    headers: {
      "x-generation-id": facts.generationId,
      "server-timing": STATIONS.map((station) => `${station};dur=${millis(chunk.micros[station])}`).join(", "),
      ...(chunk.named ? { "x-session-step": String(chunk.step) } : {}),
      ...referenceHeader(facts.manifest),
    },
  };
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

/** Random weights say so wherever a user could meet them. */
function referenceHeader(manifest: Manifest): Record<string, string> {
  return manifest.reference ? { "x-tendon-bundle": "reference" } : {};
}
