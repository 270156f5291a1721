/** A response of a language model as a client asks for it and reads it. */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { printable } from "../std/printable.ts";
import { Problem } from "../std/problem.ts";
import { get, post, type Service } from "./http.ts";
import { textAt, valueAt } from "./json.ts";

export const RESPONSES_ROUTE = "/v1/responses";

export interface Question {
  readonly model: string;
  readonly input: string;
  readonly instructions?: string | undefined;
  readonly maxOutputTokens?: number | undefined;
}

/** The JSON body of `POST /v1/responses`. */
export function questionBody({ model, input, instructions, maxOutputTokens }: Question, stream: boolean): object {
  return {
    model,
    input,
    ...(instructions === undefined ? {} : { instructions }),
    ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
    stream,
  };
}

const nullable = <T extends ReturnType<typeof Type.Object>>(schema: T) => Type.Union([schema, Type.Null()]);
const text = Type.String();

/** The response object, as far as a client needs it; an object that passes keeps its other keys. */
const ResponseObject = Type.Object({
  id: Type.String({ pattern: "^resp_[0-9A-Za-z]+$" }),
  status: text,
  output: Type.Array(Type.Unknown()),
  error: nullable(Type.Object({ code: text, message: text })),
  incomplete_details: nullable(Type.Object({ reason: text })),
});
export type ResponseObject = Static<typeof ResponseObject>;

/** Undefined when a field is missing or of another type. */
export function responseOf(value: unknown): ResponseObject | undefined {
  return Value.Check(ResponseObject, value) ? value : undefined;
}

/** Whether it may still change. */
export function isOpen({ status }: ResponseObject): boolean {
  return status === "queued" || status === "in_progress";
}

/** What the model says: the texts of all messages, or why it says nothing. */
export function answerText({ output }: ResponseObject): string {
  const contents = output.map((item) => (textAt(item, "type") === "message" ? valueAt(item, "content") : undefined));
  const parts = contents.flatMap((content): unknown[] => (Array.isArray(content) ? content : []));
  return parts.map((part) => textAt(part, "text") ?? textAt(part, "refusal") ?? "").join("");
}

/** Why a response that has ended is not a whole answer. */
export function shortcoming({ status, error, incomplete_details }: ResponseObject): string | undefined {
  if (status === "completed") return undefined;
  if (status === "incomplete") {
    const reason = printable(incomplete_details?.reason ?? "the service does not say why");
    const advice = reason === "max_output_tokens" ? "; ask for more with --max-output-tokens" : "";
    return `the answer is incomplete (${reason})${advice}`;
  }
  return error === null ? `the response is ${printable(status)}` : printable(`${error.code}: ${error.message}`);
}

interface Sending {
  /** A repeat with it gets the same response. */
  readonly key: string;
  readonly signal: AbortSignal;
}

/** Submits a question to a background model. */
export async function submit(
  service: Service,
  question: Question,
  sending: Sending,
): Promise<ResponseObject | Problem> {
  const { key, signal } = sending;
  const body = JSON.stringify(questionBody(question, false));
  const answer = await post(service, RESPONSES_ROUTE, body, { headers: { "idempotency-key": key }, signal });
  return answer instanceof Problem ? answer : (responseOf(answer.body) ?? noResponse(service));
}

/** The response as it is now. */
export async function retrieve(service: Service, id: string, signal: AbortSignal): Promise<ResponseObject | Problem> {
  const answer = await get(service, `${RESPONSES_ROUTE}/${id}`, { signal });
  return answer instanceof Problem ? answer : (responseOf(answer.body) ?? noResponse(service));
}

export function noResponse({ url }: Service): Problem {
  return new Problem(`the service at ${url} answered without a response object; is it a tendon service?`);
}
