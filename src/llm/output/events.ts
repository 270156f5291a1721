/**
 * The events of a streamed response (public Responses API), by the types of the `openai` package. An event gets its sequence number when
 * it is printed, so that waiting deltas can be joined.
 */
// Its types alone: the package is for tests.
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import type { OutputItem, ResponseObject } from "./object.ts";

type Unnumbered<Event> = Event extends ResponseStreamEvent ? Omit<Event, "sequence_number"> : never;
type Named<Type extends ResponseStreamEvent["type"]> = Unnumbered<Extract<ResponseStreamEvent, { type: Type }>>;

type LifeEvent = {
  readonly type: `response.${"created" | "queued" | "in_progress" | "completed" | "incomplete" | "failed"}`;
  readonly response: ResponseObject;
};

type TextName = "output_text" | "refusal" | "reasoning_text" | "reasoning_summary_text" | "function_call_arguments";

/** A piece of text. Pieces of one place may be joined before they are sent. */
type DeltaEvent = Named<`response.${TextName}.delta`>;

export type ItemEvent =
  | DeltaEvent
  | Named<`response.${TextName}.done`>
  | Named<`response.${"content_part" | "reasoning_summary_part"}.${"added" | "done"}`>
  | {
      readonly type: "response.output_item.added" | "response.output_item.done";
      readonly output_index: number;
      readonly item: OutputItem;
    };

/** The stream ends while the job goes on. The error is flat for some clients and nested for others. */
export interface ErrorEvent {
  readonly type: "error";
  readonly code: string;
  readonly message: string;
  readonly param: null;
  readonly error: { readonly type: string; readonly code: string; readonly message: string; readonly param: null };
}

export type ResponsesEvent = LifeEvent | ItemEvent | ErrorEvent;

/** One event, whole. */
export function eventText(event: ResponsesEvent, sequence: number): string {
  const { type } = event;
  // Nearly all events are deltas. A template takes a fifth of the time that printing an object takes.
  if (type === "response.output_text.delta") {
    const { item_id, output_index, content_index, delta } = event;
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence},"item_id":"${item_id}","output_index":${output_index},"content_index":${content_index},"delta":${JSON.stringify(delta)},"logprobs":[]}\n\n`;
  }
  const { type: _, ...fields } = event;
  return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence, ...fields })}\n\n`;
}

export const DONE = "data: [DONE]\n\n";

/** Keeps proxies and idle time-outs from ending a silent stream. */
export const KEEPALIVE = ": keepalive\n\n";

/** Joins `later` to `earlier` if it continues its text, and returns whether it did. */
export function joined(earlier: ResponsesEvent | undefined, later: ResponsesEvent): boolean {
  if (earlier === undefined || earlier.type !== later.type || !isDelta(earlier) || !isDelta(later)) return false;
  if (earlier.item_id !== later.item_id || placeOf(earlier) !== placeOf(later)) return false;
  earlier.delta += later.delta;
  return true;
}

function isDelta(event: ResponsesEvent): event is DeltaEvent {
  return "delta" in event;
}

function placeOf(event: DeltaEvent): number {
  if ("content_index" in event) return event.content_index;
  return "summary_index" in event ? event.summary_index : 0;
}
