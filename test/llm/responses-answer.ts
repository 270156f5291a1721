/** A script's answer as the object of the Responses protocol, complete as OpenAI's. */
import type {
  Response,
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseUsage,
} from "openai/resources/responses/responses";
import { type Answer, callId, textOf, tokensOf } from "./script.ts";

export interface ResponsesOptions {
  readonly id?: string;
  readonly model?: string;
}

/**
 * As it is on the wire: `output_text` is made by OpenAI's clients, an answer that is not over has no usage yet, and Open
 * Responses requires three keys of its own.
 */
export type WireResponse = Omit<Response, "output_text" | "usage"> & {
  readonly usage?: ResponseUsage | null;
  readonly frequency_penalty: number;
  readonly presence_penalty: number;
  readonly store: boolean;
};

const CREATED = 1_764_000_000;

function usageOf(usage: Answer["usage"]): { usage?: ResponseUsage } {
  if (usage === "none") return {};
  if (usage !== undefined && "wire" in usage) return { usage: usage.wire as ResponseUsage };
  const { input, output, cached, reasoning } = tokensOf(usage);
  return {
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached, cache_write_tokens: 0 },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + output,
    },
  };
}

/** The object before anything is in it; all keys that Open Responses requires. */
export function emptyResponse({ id = "resp_1", model = "scripted" }: ResponsesOptions): WireResponse {
  return {
    id,
    object: "response",
    created_at: CREATED,
    completed_at: null,
    status: "in_progress",
    access_programs: null,
    background: false,
    error: null,
    frequency_penalty: 0,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: {},
    model,
    output: [],
    parallel_tool_calls: true,
    presence_penalty: 0,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: null,
    safety_identifier: null,
    service_tier: "default",
    store: true,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    truncation: "disabled",
    usage: null,
  };
}

function endOf(answer: Answer): Pick<WireResponse, "status" | "completed_at" | "incomplete_details"> {
  const cut = answer.finish === "length" || answer.finish === "content_filter";
  if (!cut) return { status: "completed", completed_at: CREATED + 1, incomplete_details: null };
  const reason = answer.finish === "length" ? "max_output_tokens" : "content_filter";
  return { status: "incomplete", completed_at: null, incomplete_details: { reason } };
}

export function outputOf(answer: Answer): ResponseOutputItem[] {
  const output: ResponseOutputItem[] = [];
  if (answer.reasoning !== undefined || answer.summary !== undefined)
    output.push({
      id: "rs_1",
      type: "reasoning",
      status: "completed",
      summary: answer.summary === undefined ? [] : [{ type: "summary_text", text: answer.summary }],
      ...(answer.reasoning === undefined ? {} : { content: [{ type: "reasoning_text", text: answer.reasoning }] }),
    });
  const content: ResponseOutputMessage["content"] = [];
  const text = textOf(answer);
  if (text !== undefined) content.push({ type: "output_text", text, annotations: [], logprobs: [] });
  if (answer.refusal !== undefined) content.push({ type: "refusal", refusal: answer.refusal });
  const status = endOf(answer).status === "incomplete" ? "incomplete" : "completed";
  if (content.length > 0) output.push({ id: "msg_1", type: "message", role: "assistant", status, content });
  for (const [index, call] of (answer.calls ?? []).entries())
    output.push({
      id: `fc_${index}`,
      type: "function_call",
      status,
      call_id: callId(call, index),
      name: call.name,
      arguments: call.arguments,
    });
  return output;
}

export function responsesAnswer(answer: Answer, options: ResponsesOptions = {}): WireResponse {
  return { ...emptyResponse(options), ...endOf(answer), output: outputOf(answer), ...usageOf(answer.usage) };
}
