/** A script's answer as the events of a Responses stream, in OpenAI's order. */
import type {
  Response,
  ResponseFunctionToolCall,
  ResponseOutputMessage,
  ResponseOutputRefusal,
  ResponseOutputText,
  ResponseReasoningItem,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import {
  emptyResponse,
  outputOf,
  type ResponsesOptions,
  responsesAnswer,
  type WireResponse,
} from "./responses-answer.ts";
import { type Answer, halves, piecesOf } from "./script.ts";

type Wire<Event> = Event extends { response: Response } ? Omit<Event, "response"> & { response: WireResponse } : Event;
export type WireEvent = Wire<ResponseStreamEvent>;

/** Events from `response.created` to `response.completed` (or `response.incomplete`). OpenAI sends no `[DONE]` after it. */
export function responsesEvents(answer: Answer, options: ResponsesOptions = {}): WireEvent[] {
  const events: WireEvent[] = [];
  const response = emptyResponse(options);
  events.push({ type: "response.created", sequence_number: events.length, response });
  events.push({ type: "response.in_progress", sequence_number: events.length, response });
  for (const [index, item] of outputOf(answer).entries()) {
    if (item.type === "reasoning") pushReasoning(events, index, item);
    if (item.type === "message") pushMessage(events, index, item, answer);
    if (item.type === "function_call") pushCall(events, index, item);
  }
  const whole = responsesAnswer(answer, options);
  const type = whole.status === "incomplete" ? "response.incomplete" : "response.completed";
  events.push({ type, sequence_number: events.length, response: whole });
  return events;
}

/** Whether an event carries something of the answer. */
export function isResponsesDelta(event: WireEvent): boolean {
  return event.type.endsWith(".delta");
}

/** The two events that say that the provider itself failed. */
export function failureEvents(before: number, message: string, options: ResponsesOptions): WireEvent[] {
  const error = { code: "server_error" as const, message };
  const response: WireResponse = { ...emptyResponse(options), status: "failed", error };
  return [
    { type: "error", sequence_number: before, code: "server_error", message, param: null },
    { type: "response.failed", sequence_number: before + 1, response },
  ];
}

function pushReasoning(events: WireEvent[], output_index: number, item: ResponseReasoningItem): void {
  const at = { item_id: item.id, output_index };
  const begun: ResponseReasoningItem = { ...item, status: "in_progress", summary: [] };
  if (item.content !== undefined) begun.content = [];
  const n = () => events.length;
  events.push({ type: "response.output_item.added", sequence_number: n(), output_index, item: begun });
  for (const [content_index, part] of (item.content ?? []).entries()) {
    const inside = { ...at, content_index };
    const empty = { ...part, text: "" };
    events.push({ type: "response.content_part.added", sequence_number: n(), ...inside, part: empty });
    for (const delta of halves(part.text))
      events.push({ type: "response.reasoning_text.delta", sequence_number: n(), ...inside, delta });
    events.push({ type: "response.reasoning_text.done", sequence_number: n(), ...inside, text: part.text });
    events.push({ type: "response.content_part.done", sequence_number: n(), ...inside, part });
  }
  for (const [summary_index, part] of item.summary.entries()) {
    const inside = { ...at, summary_index };
    const empty = { ...part, text: "" };
    events.push({ type: "response.reasoning_summary_part.added", sequence_number: n(), ...inside, part: empty });
    for (const delta of halves(part.text))
      events.push({ type: "response.reasoning_summary_text.delta", sequence_number: n(), ...inside, delta });
    events.push({ type: "response.reasoning_summary_text.done", sequence_number: n(), ...inside, text: part.text });
    events.push({ type: "response.reasoning_summary_part.done", sequence_number: n(), ...inside, part });
  }
  events.push({ type: "response.output_item.done", sequence_number: n(), output_index, item });
}

function pushMessage(events: WireEvent[], output_index: number, item: ResponseOutputMessage, answer: Answer): void {
  const n = () => events.length;
  const begun: ResponseOutputMessage = { ...item, status: "in_progress", content: [] };
  events.push({ type: "response.output_item.added", sequence_number: n(), output_index, item: begun });
  for (const [content_index, part] of item.content.entries()) {
    const inside = { item_id: item.id, output_index, content_index };
    events.push({ type: "response.content_part.added", sequence_number: n(), ...inside, part: emptied(part) });
    if (part.type === "output_text") {
      for (const delta of piecesOf(answer))
        events.push({ type: "response.output_text.delta", sequence_number: n(), ...inside, delta, logprobs: [] });
      const { text } = part;
      events.push({ type: "response.output_text.done", sequence_number: n(), ...inside, text, logprobs: [] });
    } else {
      for (const delta of halves(part.refusal))
        events.push({ type: "response.refusal.delta", sequence_number: n(), ...inside, delta });
      events.push({ type: "response.refusal.done", sequence_number: n(), ...inside, refusal: part.refusal });
    }
    events.push({ type: "response.content_part.done", sequence_number: n(), ...inside, part });
  }
  events.push({ type: "response.output_item.done", sequence_number: n(), output_index, item });
}

function emptied(part: ResponseOutputText | ResponseOutputRefusal): ResponseOutputText | ResponseOutputRefusal {
  return part.type === "output_text" ? { ...part, text: "" } : { ...part, refusal: "" };
}

function pushCall(events: WireEvent[], output_index: number, item: ResponseFunctionToolCall): void {
  const n = () => events.length;
  const at = { item_id: item.id ?? "", output_index };
  const begun: ResponseFunctionToolCall = { ...item, status: "in_progress", arguments: "" };
  events.push({ type: "response.output_item.added", sequence_number: n(), output_index, item: begun });
  for (const delta of halves(item.arguments))
    events.push({ type: "response.function_call_arguments.delta", sequence_number: n(), ...at, delta });
  const whole = { arguments: item.arguments };
  events.push({ type: "response.function_call_arguments.done", sequence_number: n(), ...at, ...whole });
  events.push({ type: "response.output_item.done", sequence_number: n(), output_index, item });
}
