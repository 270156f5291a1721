/** A script's answer in the Responses protocol, whole or as the events of a stream, in OpenAI's order. */
import type { ResponseOutputItem, ResponseOutputMessage } from "openai/resources/responses/responses";
import { type Answer, callId, halves, piecesOf, textOf, tokensOf } from "./script.ts";

export interface ResponsesOptions {
  readonly id?: string;
  readonly model?: string;
}

export interface WireEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

const CREATED = 1_764_000_000;

function usageOf(usage: Answer["usage"]): object | null {
  if (usage === "none") return null;
  if (usage !== undefined && "wire" in usage) return usage.wire as object;
  const { input, output, cached, reasoning } = tokensOf(usage);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

/** The object before anything is in it, with the keys that the official client reads. */
function emptyResponse({ id = "resp_1", model = "scripted" }: ResponsesOptions) {
  const nothing = { error: null, incomplete_details: null, instructions: null, metadata: {}, usage: null };
  const asked = { model, tools: [], tool_choice: "auto", parallel_tool_calls: true, temperature: 1, top_p: 1 };
  return { id, object: "response", created_at: CREATED, status: "in_progress", ...nothing, ...asked, output: [] };
}

function outputOf(answer: Answer): ResponseOutputItem[] {
  const output: ResponseOutputItem[] = [];
  const status = isCut(answer) ? "incomplete" : "completed";
  const { reasoning, summary, refusal, calls = [] } = answer;
  if (reasoning !== undefined || summary !== undefined)
    output.push({
      id: "rs_1",
      type: "reasoning",
      status: "completed",
      summary: summary === undefined ? [] : [{ type: "summary_text", text: summary }],
      ...(reasoning === undefined ? {} : { content: [{ type: "reasoning_text", text: reasoning }] }),
    });
  const content: ResponseOutputMessage["content"] = [];
  const text = textOf(answer);
  if (text !== undefined) content.push({ type: "output_text", text, annotations: [], logprobs: [] });
  if (refusal !== undefined) content.push({ type: "refusal", refusal });
  if (content.length > 0) output.push({ id: "msg_1", type: "message", role: "assistant", status, content });
  for (const [index, call] of calls.entries()) {
    const { name, arguments: given } = call;
    output.push({
      id: `fc_${index}`,
      type: "function_call",
      status,
      call_id: callId(call, index),
      name,
      arguments: given,
    });
  }
  return output;
}

function isCut({ finish }: Answer): boolean {
  return finish === "length" || finish === "content_filter";
}

export function responsesAnswer(answer: Answer, options: ResponsesOptions = {}): object {
  const reason = answer.finish === "length" ? "max_output_tokens" : "content_filter";
  return {
    ...emptyResponse(options),
    status: isCut(answer) ? "incomplete" : "completed",
    incomplete_details: isCut(answer) ? { reason } : null,
    output: outputOf(answer),
    usage: usageOf(answer.usage),
  };
}

/** Events from `response.created` to `response.completed` (or `response.incomplete`). OpenAI sends no `[DONE]` after it. */
export function responsesEvents(answer: Answer, options: ResponsesOptions = {}): WireEvent[] {
  const events: WireEvent[] = [];
  const push = (type: string, fields: object) =>
    events.push({ type: `response.${type}`, sequence_number: events.length, ...fields });
  const response = emptyResponse(options);
  push("created", { response });
  push("in_progress", { response });
  for (const [output_index, item] of outputOf(answer).entries()) {
    const at = { output_index, item_id: item.id };
    push("output_item.added", { output_index, item: { ...item, status: "in_progress", ...emptied(item) } });
    for (const [index, part, kind] of partsOf(item)) {
      const inside = { ...at, [kind.index]: index };
      push(`${kind.part}.added`, { ...inside, part: { ...part, [kind.field]: "" } });
      const text = String(part[kind.field]);
      const pieces = part.type === "output_text" ? piecesOf(answer) : halves(text);
      for (const delta of pieces) push(`${kind.text}.delta`, { ...inside, delta, logprobs: [] });
      push(`${kind.text}.done`, { ...inside, [kind.field]: text, logprobs: [] });
      push(`${kind.part}.done`, { ...inside, part });
    }
    if (item.type === "function_call") {
      for (const delta of halves(item.arguments)) push("function_call_arguments.delta", { ...at, delta });
      push("function_call_arguments.done", { ...at, arguments: item.arguments });
    }
    push("output_item.done", { output_index, item });
  }
  const whole = responsesAnswer(answer, options);
  push(isCut(answer) ? "incomplete" : "completed", { response: whole });
  return events;
}

/** How the events call a part, its text, and its number; and the field of its text. */
const KINDS = {
  output_text: { part: "content_part", text: "output_text", index: "content_index", field: "text" },
  refusal: { part: "content_part", text: "refusal", index: "content_index", field: "refusal" },
  reasoning_text: { part: "content_part", text: "reasoning_text", index: "content_index", field: "text" },
  summary_text: {
    part: "reasoning_summary_part",
    text: "reasoning_summary_text",
    index: "summary_index",
    field: "text",
  },
} as const;

type Part = { readonly type: keyof typeof KINDS } & Readonly<Record<string, unknown>>;

function partsOf(item: ResponseOutputItem): (readonly [index: number, Part, (typeof KINDS)[Part["type"]]])[] {
  const lists =
    item.type === "message" ? [item.content] : item.type === "reasoning" ? [item.content, item.summary] : [];
  return lists.flatMap((list) =>
    ((list ?? []) as readonly unknown[] as readonly Part[]).map(
      (part, index) => [index, part, KINDS[part.type]] as const,
    ),
  );
}

function emptied(item: ResponseOutputItem): object {
  if (item.type === "function_call") return { arguments: "" };
  return item.type === "reasoning" ? { summary: [], ...(item.content && { content: [] }) } : { content: [] };
}

/** Whether an event carries something of the answer. */
export function isResponsesDelta(event: WireEvent): boolean {
  return event.type.endsWith(".delta");
}

/** The two events that say that the provider itself failed. */
export function failureEvents(before: number, message: string, options: ResponsesOptions): WireEvent[] {
  const error = { code: "server_error", message };
  const response = { ...emptyResponse(options), status: "failed", error };
  return [
    { type: "error", sequence_number: before, ...error, param: null },
    { type: "response.failed", sequence_number: before + 1, response },
  ];
}
