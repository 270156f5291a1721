/** The events of a response that has ended, as a live one has them, with each text in one piece. */
import { present } from "../../std/assert.ts";
import { Draft } from "./draft.ts";
import type { ResponsesEvent } from "./events.ts";
import type { EventFlow } from "./flow.ts";
import { type OutputItem, partsOf, type ResponseObject, textOf } from "./object.ts";

/** A response's object before it had output. */
export function begunOf(object: ResponseObject): ResponseObject {
  return {
    ...object,
    status: "in_progress",
    completed_at: null,
    error: null,
    incomplete_details: null,
    output: [],
    output_text: "",
    usage: null,
  };
}

/** Emits the output, item by item, and the end. */
export function replayEnd(object: ResponseObject, flow: Pick<EventFlow, "push" | "end">): void {
  const emit = (event: ResponsesEvent) => flow.push(event);
  const ids = object.output.map(({ id }) => id).values();
  const draft = new Draft({ makeId: () => present(ids.next().value, "the id of a stored item"), emit });
  for (const item of object.output) {
    replayItem(item, draft);
    draft.close(item.status === "incomplete" ? "incomplete" : "completed");
  }
  const { status } = object;
  // `cancelled` has no event, and is reported as a failure.
  const type = status === "completed" || status === "incomplete" ? status : "failed";
  emit({ type: `response.${type}`, response: object });
  flow.end("done");
}

function replayItem(item: OutputItem, draft: Draft): void {
  if (item.type === "function_call") {
    draft.arguments(draft.beginCall(item.name, item.call_id), item.arguments);
    return;
  }
  if (item.type === "message") draft.beginMessage(item.phase ?? undefined);
  else draft.beginReasoning().encrypted_content = item.encrypted_content;
  for (const [place, part] of partsOf(item).entries()) {
    draft.beginPart(part.type, place);
    draft.add(part.type, textOf(part), place);
  }
}
