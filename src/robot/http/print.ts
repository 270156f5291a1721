/** Answers of the robot route: the completion as JSON, as server-sent events (specification, streaming rules 1 to 5), and their headers. */
import { STATIONS } from "../../engine/engine.ts";
import type { Events } from "../../http/sse.ts";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { Failure } from "../../std/failure.ts";
import type { Answer, AnswerHead } from "../answer.ts";
import type { Served } from "../catalog.ts";
import { chunkText, usageObject } from "../checks/chunk.ts";

/** What an answer says of its generation, known before the model has run. */
export interface Generation {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
}

/** A finished answer: a chunk or a description. */
export interface Completion extends Generation {
  readonly content: string;
  readonly usage: ReturnType<typeof usageObject>;
}

export function chunkCompletion(answer: Answer): Completion {
  const { id, created, model, usage } = answer.head;
  return { id, created, model, content: chunkText(answer), usage: usageObject(usage) };
}

/** The answer to a request without images. */
export function descriptionCompletion(generation: Generation, content: string): Completion {
  return { ...generation, content, usage: usageObject({ prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0 }) };
}

/** The body of a plain answer. */
export function completionText({ id, created, model, content, usage }: Completion): string {
  const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
  return JSON.stringify({ id, object: "chat.completion", created, model, choices, usage });
}

const PROCESSING = ": processing\n\n";
const DONE = "data: [DONE]\n\n";

/** `: processing` at once and every 250 ms, then the events of the completion that `finish` comes to. */
export function completionEvents(
  clock: Clock,
  generation: Generation,
  finish: () => Promise<Completion | Failure>,
  left: () => void = () => {},
): Events {
  return {
    unsentBytesMax: LIMITS.sseUnsentBytesMax,
    async write(send) {
      send(PROCESSING);
      const stop = clock.every(LIMITS.processingMs, () => send(PROCESSING));
      const outcome = await finish().finally(stop);
      if (outcome instanceof Failure) return outcome;
      const delta = { role: "assistant", content: outcome.content };
      send(event(outcome, { index: 0, delta, finish_reason: null }));
      send(event(outcome, { index: 0, delta: {}, finish_reason: "stop" }, { usage: outcome.usage }));
      send(DONE);
      return undefined;
    },
    failed: (failure) => [event(generation, { index: 0, delta: {}, finish_reason: "error" }, failure.body()), DONE],
    left,
  };
}

function event({ id, created, model }: Generation, choice: object, more: object = {}): string {
  const head = { id, object: "chat.completion.chunk", created, model, choices: [choice] };
  return `data: ${JSON.stringify({ ...head, ...more })}\n\n`;
}

/** Headers that are known before the model has run. `step`: null where the client named no session. */
export function generationHeaders(
  id: string,
  { warning }: Pick<Served, "warning">,
  step: number | null,
): Record<string, string> {
  return {
    "x-generation-id": id,
    ...(step === null ? {} : { "x-session-step": String(step) }),
    // Random weights, and no model at all, say so wherever a user could meet them.
    ...(warning === undefined ? {} : { "x-tendon-bundle": "reference" }),
  };
}

/** Time at each station and until the record was durable, for browsers and proxies. */
export function serverTiming({ timing_ms }: AnswerHead, commitMs: number): string {
  const commit = Math.round(commitMs * 1000) / 1000;
  return [...STATIONS.map((station) => `${station};dur=${timing_ms[station]}`), `commit;dur=${commit}`].join(", ");
}
