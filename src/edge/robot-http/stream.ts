/** The robot route's answers as server-sent events (specification, streaming rules 1 to 5). */
import { Failure } from "../../error/core.ts";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import type { Events } from "../http/sse.ts";
import type { ReplyFacts } from "./reply.ts";

const PROCESSING = ": processing\n\n";
const DONE = "data: [DONE]\n\n";

/** The part of a whole answer that the events repeat. */
interface Whole {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly choices: readonly [{ readonly message: { readonly content: string } }];
  readonly usage: unknown;
}

/** `: processing` at once and every 250 ms, then the events of the answer that `finish` comes to, as JSON text. */
export function chatEvents(
  clock: Clock,
  facts: ReplyFacts,
  finish: () => Promise<string | Failure>,
  left: () => void = () => {},
): Events {
  return {
    unsentBytesMax: LIMITS.sseUnsentBytesMax,
    async write(send) {
      send(PROCESSING);
      const stop = clock.every(LIMITS.processingMs, () => send(PROCESSING));
      const outcome = await finish().finally(stop);
      if (outcome instanceof Failure) return outcome;
      for (const event of answerEvents(outcome)) send(event);
      return undefined;
    },
    failed: (failure) => failureEvents(facts, failure),
    left,
  };
}

/** Made of the whole answer's text, so that a streamed chunk and a plain one cannot differ. */
function answerEvents(text: string): string[] {
  const { id, created, model, choices, usage } = JSON.parse(text) as Whole;
  const head = { id, object: "chat.completion.chunk", created, model };
  const delta = { role: "assistant", content: choices[0].message.content };
  return [
    event({ ...head, choices: [{ index: 0, delta, finish_reason: null }] }),
    event({ ...head, choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage }),
    DONE,
  ];
}

function failureEvents({ generationId, created, manifest }: ReplyFacts, failure: Failure): string[] {
  const head = { id: generationId, object: "chat.completion.chunk", created, model: manifest.id };
  const choices = [{ index: 0, delta: {}, finish_reason: "error" }];
  return [event({ ...head, choices, ...failure.body() }), DONE];
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
