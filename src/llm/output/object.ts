/** The response object of the public Responses API, with the items of its output. Every key is present, with null for an absent value. */
// Its types alone: the package is for tests.
import type {
  ResponseFunctionToolCall,
  ResponseOutputMessage,
  ResponseReasoningItem,
  ResponseStatus,
  ResponseUsage,
} from "openai/resources/responses/responses";
import type { Failure } from "../../std/failure.ts";
import { isBackground } from "../models.ts";
import type { LlmRequest } from "../request.ts";
import type { LlmUsage } from "../usage.ts";

export interface ResponseObject {
  readonly id: string;
  readonly object: "response";
  /** Unix seconds. */
  readonly created_at: number;
  readonly completed_at: number | null;
  readonly status: ResponseStatus;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly incomplete_details: { readonly reason: IncompleteReason } | null;
  readonly output: readonly OutputItem[];
  readonly output_text: string;
  readonly usage: ResponseUsage | null;
  readonly [echo: string]: unknown;
}

/** The object of a text that this service wrote (`newObject`, `endedObject`). */
export function parsedObject(text: string): ResponseObject {
  return JSON.parse(text) as ResponseObject;
}

export type IncompleteReason = "max_output_tokens" | "content_filter";

/** The object of a response that was just submitted. */
export function newObject(
  id: string,
  createdAt: number,
  status: "queued" | "in_progress",
  request: LlmRequest,
): ResponseObject {
  const { model, instructions, max_output_tokens, metadata, parallel_tool_calls, prompt_cache_key } = request;
  const { reasoning, safety_identifier, temperature, text, tool_choice, tools, top_p, user } = request;
  const background = isBackground(model);
  return {
    id,
    object: "response",
    created_at: createdAt,
    completed_at: null,
    status,
    access_programs: null,
    background,
    error: null,
    frequency_penalty: 0,
    incomplete_details: null,
    instructions,
    max_output_tokens,
    max_tool_calls: null,
    metadata,
    model,
    output: [],
    output_text: "",
    parallel_tool_calls: parallel_tool_calls ?? true,
    presence_penalty: 0,
    previous_response_id: null,
    prompt_cache_key,
    reasoning,
    safety_identifier,
    service_tier: "default",
    store: background,
    temperature: temperature ?? 1,
    text: { format: text.format, ...(text.verbosity === null ? {} : { verbosity: text.verbosity }) },
    tool_choice,
    tools,
    top_logprobs: 0,
    top_p: top_p ?? 1,
    truncation: "disabled",
    usage: null,
    user,
  };
}

/** What a provider has answered. */
export interface Answer {
  readonly output: readonly OutputItem[];
  /** undefined: complete. */
  readonly incomplete: IncompleteReason | undefined;
  readonly usage: LlmUsage;
  /** The usage is the service's own estimate. */
  readonly estimated: boolean;
}

/** `at`: Unix seconds. */
export function endedObject(
  begun: ResponseObject,
  { output, usage, incomplete }: Omit<Answer, "estimated">,
  at: number,
): ResponseObject {
  return {
    ...begun,
    status: incomplete ? "incomplete" : "completed",
    completed_at: incomplete ? null : at,
    incomplete_details: incomplete ? { reason: incomplete } : null,
    output,
    output_text: outputText(output),
    usage: {
      input_tokens: usage.promptTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: 0 },
      output_tokens: usage.completionTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      total_tokens: usage.promptTokens + usage.completionTokens,
    },
  };
}

/** The object of a failed response, with the output that had come. */
export function failedObject(
  begun: ResponseObject,
  failure: Failure,
  output: readonly OutputItem[] = [],
): ResponseObject {
  const error = { code: failure.wireCode, message: failure.message };
  return { ...begun, status: "failed", error, output, output_text: outputText(output) };
}

export type ItemStatus = ResponseOutputMessage["status"];
export type Message = ResponseOutputMessage;
export type Reasoning = Required<ResponseReasoningItem>;
export type FunctionCall = ResponseFunctionToolCall & { readonly id: string; status: ItemStatus };

export type OutputItem = Message | Reasoning | FunctionCall;

export type OutputPart = Message["content"][number] | Reasoning["content"][number] | Reasoning["summary"][number];

export function textOf(part: OutputPart): string {
  return part.type === "refusal" ? part.refusal : part.text;
}

/** The parts of an item in the order in which they are told. */
export function partsOf(item: Message | Reasoning): readonly OutputPart[] {
  return item.type === "message" ? item.content : [...item.summary, ...item.content];
}

/** Bytes of all that the model has written. */
export function bytesOf(output: readonly OutputItem[]): number {
  const texts = output.flatMap((item) =>
    item.type === "function_call" ? [item.arguments] : partsOf(item).map((part) => textOf(part)),
  );
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** The text of all messages. */
function outputText(output: readonly OutputItem[]): string {
  let text = "";
  for (const item of output) {
    if (item.type !== "message") continue;
    for (const part of item.content) if (part.type === "output_text") text += part.text;
  }
  return text;
}
