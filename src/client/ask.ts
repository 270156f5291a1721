/** A question to a language model and its whole answer, live or in the background. */
import { createParser } from "eventsource-parser";
import { LIMITS } from "../limits.ts";
import { systemClock } from "../std/clock.ts";
import { parseJson, textAt, valueAt } from "../std/json.ts";
import { printable } from "../std/printable.ts";
import { Problem } from "../std/problem.ts";
import { get, NoAnswer, post, postAndRead, type Service } from "./http.ts";
import { Silence } from "./waiting.ts";

export const RESPONSES_ROUTE = "/v1/responses";
const LOOK_MS = 500;
const PIECES = ["response.output_text.delta", "response.refusal.delta"];
const ENDS = ["response.completed", "response.incomplete", "response.failed"];
const ID = /^resp_[0-9A-Za-z]+$/;

/** Fields of the body of `POST /v1/responses`. */
export interface Question {
  readonly model: string;
  readonly input: string;
}

export interface Asking {
  /** The `Idempotency-Key`. */
  readonly key: string;
  /** The response has this id. */
  begun(id: string): void;
  /** The next piece of the answer. */
  text(piece: string): Promise<void>;
}

/** The response object, as the service sent it. */
export type Ended = object | Problem;

/** Asks a live model. `NoAnswer`: the connection broke; the service may still answer. */
export async function askLive(service: Service, question: Question, asking: Asking): Promise<Ended> {
  // The service sends a byte every few seconds.
  const silence = new Silence(systemClock, LIMITS.clientAnswerMs);
  try {
    const json = JSON.stringify({ ...question, stream: true });
    const headers = { "idempotency-key": asking.key };
    const answer = await postAndRead(service, RESPONSES_ROUTE, json, { headers, signal: silence.signal });
    if (answer instanceof Problem) return answer;
    if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return noResponse(service);
    return (await readEvents(answer, asking, silence)) ?? broken(service);
  } catch {
    return broken(service);
  } finally {
    silence.stop();
  }
}

/** What the stream ended with; undefined when it broke before. */
async function readEvents({ body }: Response, { begun, text }: Asking, silence: Silence): Promise<Ended | undefined> {
  const events: unknown[] = [];
  let isTooLong = false;
  const parser = createParser({
    maxBufferSize: LIMITS.llmLineCharsMax,
    onEvent: ({ data }) => events.push(parseJson(data)),
    onError: ({ type }) => {
      isTooLong ||= type === "max-buffer-size-exceeded";
    },
  });
  const decoder = new TextDecoder();
  for await (const bytes of body ?? []) {
    silence.heard();
    parser.feed(decoder.decode(bytes, { stream: true }));
    for (const event of events.splice(0)) {
      const type = textAt(event, "type") ?? "";
      const response = valueAt(event, "response");
      const id = idOf(response);
      if (type === "response.created" && id !== undefined) begun(id);
      else if (PIECES.includes(type)) await text(textAt(event, "delta") ?? "");
      else if (type === "error") return errorOf(event);
      else if (ENDS.includes(type) && isObject(response)) return response;
    }
    if (isTooLong) return new Problem("an event of the answer is too long");
  }
  return undefined;
}

function broken({ url }: Service): NoAnswer {
  return new NoAnswer(`the connection to ${url} broke before the answer was whole`, false);
}

/** Submits to a background model and looks until the response has ended. */
export async function askInBackground(service: Service, question: Question, asking: Asking): Promise<Ended> {
  const headers = { "idempotency-key": asking.key };
  let answer = await post(service, RESPONSES_ROUTE, JSON.stringify(question), headers);
  for (;;) {
    if (answer instanceof Problem) return answer;
    const id = idOf(answer.body);
    if (id === undefined || !isObject(answer.body)) return noResponse(service);
    asking.begun(id);
    if (!["queued", "in_progress"].includes(textAt(answer.body, "status") ?? "")) break;
    await Bun.sleep(LOOK_MS);
    answer = await get(service, `${RESPONSES_ROUTE}/${id}`);
  }
  await asking.text(answerText(answer.body));
  return answer.body;
}

/** The text of all messages, or why the model says nothing. */
function answerText(response: object): string {
  const output = valueAt(response, "output");
  const contents = (Array.isArray(output) ? output : []).map((item) => valueAt(item, "content"));
  const parts = contents.flatMap((content): unknown[] => (Array.isArray(content) ? content : []));
  return parts.map((part) => textAt(part, "text") ?? textAt(part, "refusal") ?? "").join("");
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function idOf(response: unknown): string | undefined {
  const id = textAt(response, "id");
  return id !== undefined && ID.test(id) ? id : undefined;
}

function noResponse({ url }: Service): Problem {
  return new Problem(`the service at ${url} answered without a response object; is it a tendon service?`);
}

/** Why a response that has ended is not a whole answer. */
export function shortcoming(response: object): Problem | undefined {
  const status = textAt(response, "status");
  if (status === "completed") return undefined;
  if (status !== "incomplete") {
    const error = valueAt(response, "error");
    return isObject(error) ? errorOf(error) : new Problem(printable(`the response is ${status}`));
  }
  const reason = printable(textAt(response, "incomplete_details", "reason") ?? "the service does not say why");
  const advice = reason === "max_output_tokens" ? "; ask for a shorter one" : "";
  return new Problem(`the answer is incomplete (${reason})${advice}`);
}

function errorOf(error: unknown): Problem {
  return new Problem(
    printable(`${textAt(error, "code") ?? "error"}: ${textAt(error, "message") ?? "no reason given"}`),
  );
}
