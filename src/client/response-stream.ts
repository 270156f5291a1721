/** One request for a live response, its events read as they come. */
import { createParser } from "eventsource-parser";
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import { printable } from "../std/printable.ts";
import { Problem } from "../std/problem.ts";
import { NoAnswer, postAndRead, type Service } from "./http.ts";
import { parseJson, textAt, valueAt } from "./json.ts";
import {
  noResponse,
  type Question,
  questionBody,
  RESPONSES_ROUTE,
  type ResponseObject,
  responseOf,
} from "./responses.ts";
import { Silence } from "./waiting.ts";

/** What becomes of a stream while it runs. */
export interface Listener {
  /** The response has this id. */
  begun(id: string): void;
  /** The next piece of the answer. */
  text(piece: string): Promise<void>;
}

export interface Stream {
  readonly key: string;
  readonly clock: Clock;
  /** Gives the stream up; the service goes on without its reader. */
  readonly signal: AbortSignal;
  readonly listener: Listener;
}

/** Resolves at the event that ends the response. `NoAnswer`: the connection broke before it. */
export async function streamed(
  service: Service,
  question: Question,
  stream: Stream,
): Promise<ResponseObject | Problem> {
  const { key, clock, signal, listener } = stream;
  // The service sends a byte every few seconds.
  const silence = new Silence(clock, LIMITS.clientAnswerMs);
  const events = new Events();
  try {
    const answer = await postAndRead(service, RESPONSES_ROUTE, JSON.stringify(questionBody(question, true)), {
      headers: { "idempotency-key": key, accept: "text/event-stream" },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (answer instanceof Problem) return answer;
    if (!/^text\/event-stream\b/.test(answer.headers.get("content-type") ?? "")) return noResponse(service);
    for await (const bytes of answer.body ?? []) {
      silence.heard();
      const { begun, text } = events.take(bytes);
      if (begun !== undefined) listener.begun(begun);
      if (text !== "") await listener.text(text);
      if (events.end !== undefined) return events.end;
    }
    return broken(service);
  } catch {
    return broken(service);
  } finally {
    silence.stop();
  }
}

function broken({ url }: Service): NoAnswer {
  return new NoAnswer(`the connection to ${url} broke before the answer was whole`, false);
}

const PIECES = ["response.output_text.delta", "response.refusal.delta"];
const ENDS = ["response.completed", "response.incomplete", "response.failed"];

/** Makes of bytes what a reader wants of the events. */
class Events {
  end: ResponseObject | Problem | undefined;
  private begun: string | undefined;
  private text = "";
  private readonly decoder = new TextDecoder();
  private readonly parser = createParser({
    maxBufferSize: LIMITS.llmLineCharsMax,
    onEvent: ({ data }) => this.event(parseJson(data)),
    onError: ({ type }) => {
      if (type === "max-buffer-size-exceeded") this.end ??= new Problem("an event of the answer is too long");
    },
  });

  /** What a read has brought. */
  take(bytes: Uint8Array): { readonly begun: string | undefined; readonly text: string } {
    this.parser.feed(this.decoder.decode(bytes, { stream: true }));
    const { begun, text } = this;
    this.begun = undefined;
    this.text = "";
    return { begun, text };
  }

  private event(event: unknown): void {
    if (this.end !== undefined) return;
    const type = textAt(event, "type") ?? "";
    if (PIECES.includes(type)) this.text += textAt(event, "delta") ?? "";
    else if (type === "response.created") this.begun = responseOf(valueAt(event, "response"))?.id;
    else if (type === "error") {
      const code = textAt(event, "code") ?? "error";
      this.end = new Problem(printable(`${code}: ${textAt(event, "message") ?? "the stream failed"}`));
    } else if (ENDS.includes(type)) {
      this.end =
        responseOf(valueAt(event, "response")) ?? new Problem("the last event of the answer has no response object");
    }
  }
}
