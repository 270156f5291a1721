/** The response of the robot route as JSON text, put together from parts that are printed once. */
import type { Manifest } from "../../bundle/manifest.ts";
import { STATIONS, type StationMicros } from "../../engine/engine.ts";
import type { Form } from "../../robot/attempt.ts";
import { rowsText } from "../../std/float32.ts";
import { chunkFields, chunkUsage, millis, usageObject } from "../robot/chunk.ts";

export interface ReplyFacts {
  readonly generationId: string;
  /** Unix seconds. */
  readonly created: number;
  readonly manifest: Manifest;
}

/** The answer to a request without images. */
export function describeText(facts: ReplyFacts, description: string): string {
  const usage = usageObject({ promptTokens: 0, cachedTokens: 0, completionTokens: 0 });
  return completion(facts, JSON.stringify(description), usage);
}

/** The answer with an action chunk. */
export function chunkForm(facts: ReplyFacts): Form<string> {
  return {
    rows: rowsText,
    text: (chunk) => {
      const { before, after } = chunkFields(facts.manifest, chunk);
      // The rows hold nothing that a JSON string must escape, so only the small parts around them are printed twice.
      const head = escaped(`${JSON.stringify(before).slice(0, -1)},"actions":`);
      const tail = escaped(`,${JSON.stringify(after).slice(1)}`);
      return completion(facts, `"${head}${chunk.rows}${tail}"`, usageObject(chunkUsage(chunk)));
    },
  };
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

/** `content` is a JSON string literal. */
function completion(facts: ReplyFacts, content: string, usage: object): string {
  return (
    `{"id":"${facts.generationId}","object":"chat.completion","created":${facts.created},` +
    `"model":${JSON.stringify(facts.manifest.id)},` +
    `"choices":[{"index":0,"message":{"role":"assistant","content":${content}},"finish_reason":"stop"}],` +
    `"usage":${JSON.stringify(usage)}}`
  );
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
