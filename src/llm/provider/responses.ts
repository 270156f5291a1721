/** The Responses protocol (`POST /responses`): its requests, which are nearly what came, and its answers. */
import type { LlmConfig } from "../../config/llm.ts";
import { type JsonObject, objectOf, present } from "../json.ts";
import { type Draft, PARTS, type PartKind } from "../output/draft.ts";
import {
  type FunctionCall,
  type IncompleteReason,
  type OutputItem,
  type OutputPart,
  type Reasoning,
  textOf,
} from "../output/object.ts";
import type { InputItem, LlmRequest, Part } from "../request.ts";
import { type LlmUsage, reportedUsage } from "../usage.ts";
import { Fault, providerError } from "./fault.ts";
import type { Dialect, Ending } from "./reader.ts";

export function responsesBody(request: LlmRequest, { model, stream }: Pick<LlmConfig, "model" | "stream">): JsonObject {
  const { instructions, max_output_tokens, temperature, top_p, tools, tool_choice, parallel_tool_calls } = request;
  const { text, reasoning, user, safety_identifier, prompt_cache_key } = request;
  const plain = text.format.type === "text" && text.verbosity === null;
  return present({
    model,
    input: request.input.map(inputItem),
    instructions,
    max_output_tokens,
    stream,
    // This service stores the response.
    store: false,
    temperature,
    top_p,
    tools: tools.length === 0 ? null : tools,
    tool_choice: tools.length === 0 ? null : tool_choice,
    parallel_tool_calls,
    text: plain ? null : present({ format: present(text.format as JsonObject), verbosity: text.verbosity }),
    reasoning: reasoning.effort === null && reasoning.summary === null ? null : present({ ...reasoning }),
    user,
    safety_identifier,
    prompt_cache_key,
  });
}

/** Ids of items are made here, since the protocol wants one for an assistant's message. */
function inputItem(item: InputItem, index: number): JsonObject {
  if (item.type === "message") {
    const { type, role, content, phase } = item;
    const own = role === "assistant" ? { id: `msg_${index}`, status: "completed" } : {};
    return { type, role, content: content.map(part), ...own, ...(phase === undefined ? {} : { phase }) };
  }
  if (item.type !== "reasoning") return { ...item };
  const { type, summary, content, encrypted_content } = item;
  return present({
    type,
    id: `rs_${index}`,
    summary: summary.map((text) => ({ type: "summary_text", text })),
    content: content.map((text) => ({ type: "reasoning_text", text })),
    encrypted_content,
  });
}

function part(given: Part): JsonObject {
  if (given.type === "refusal") return { type: "refusal", refusal: given.text };
  if (given.type === "output_text") return { ...given, annotations: [] };
  return given.type === "input_image" ? present({ ...given }) : { ...given };
}

const DELTAS: ReadonlyMap<unknown, PartKind> = new Map([
  ["response.output_text.delta", "output_text"],
  ["response.refusal.delta", "refusal"],
  ["response.reasoning_text.delta", "reasoning_text"],
  ["response.reasoning.delta", "reasoning_text"],
  ["response.reasoning_summary_text.delta", "summary_text"],
]);

/**
 * Reads an answer. Providers differ in the events and fields that they send, so only the text counts. The text of the deltas must be
 * that of the `done` events and of the final response, where these have one.
 */
export class ResponsesDialect implements Dialect {
  /** Our items by the provider's place and id of each. */
  private readonly items = new Map<unknown, OutputItem>();
  private end: Ending | undefined;

  constructor(
    private readonly draft: Draft,
    private readonly outputTokensMax: number,
  ) {}

  event(value: unknown): Fault | "end" | undefined {
    const event = objectOf(value);
    if (!event) return new Fault("invalid", "an event is no object");
    switch (event.type) {
      case "response.output_item.added":
        return this.itemOf(event, objectOf(event.item)) instanceof Fault ? outOfOrder("an item") : undefined;
      case "response.output_item.done":
        return this.reconcile(event, objectOf(event.item));
      case "response.function_call_arguments.delta":
        return this.delta(event, "function_call", (text, item) => {
          if (item.type === "function_call") this.draft.arguments(item, text);
        });
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return this.whole(event.response) ?? "end";
      case "error":
        return providerError(event.error ?? event);
    }
    const kind = DELTAS.get(event.type);
    // Other events announce or repeat. The final text shows whether something was missed.
    return kind && this.delta(event, PARTS[kind].item, (text) => this.draft.add(kind, text, placeOf(event)));
  }

  whole(value: unknown): Fault | undefined {
    const response = objectOf(value);
    if (!response) return new Fault("invalid", "the response is no object");
    const { status, error, output } = response;
    if (error) return providerError(error);
    if (status === "failed" || status === "cancelled") return new Fault("unavailable", `the response is ${status}`);
    if (status !== "completed" && status !== "incomplete") return new Fault("invalid", "the response is not over");
    if (output !== undefined && !Array.isArray(output)) return new Fault("invalid", "the output is no array");
    for (const [index, item] of (output ?? []).entries()) {
      if (this.draft.full) break;
      const fault = this.reconcile({ output_index: index }, objectOf(item));
      if (fault) return fault;
    }
    const said = objectOf(response.usage);
    const usage = said && reportedUsage(said);
    const incomplete = status === "incomplete" ? reasonOf(objectOf(response.incomplete_details)) : this.cutOff(usage);
    this.end = { incomplete, usage };
    return undefined;
  }

  ending(): Ending | Fault {
    return this.end ?? new Fault("invalid", "the stream ends without its last event");
  }

  /** Some servers send `completed` when the limit of tokens has ended the answer. */
  private cutOff(usage: LlmUsage | undefined): IncompleteReason | undefined {
    return usage && usage.completionTokens >= this.outputTokensMax ? "max_output_tokens" : undefined;
  }

  private delta(
    event: JsonObject,
    kind: OutputItem["type"],
    add: (text: string, item: OutputItem) => void,
  ): Fault | undefined {
    if (typeof event.delta !== "string") return new Fault("invalid", "a delta without text");
    const item = this.known(event) ?? this.begin(event, { type: kind });
    if (item instanceof Fault) return item;
    if (item !== this.draft.open || item.type !== kind) return outOfOrder("a delta");
    add(event.delta, item);
    return undefined;
  }

  /** The item with the event's place, else with its id: some servers send only one of the two. */
  private known(event: JsonObject): OutputItem | undefined {
    const { output_index: index, item_id: id } = event;
    return (
      (typeof index === "number" ? this.items.get(index) : undefined) ??
      (id === undefined ? undefined : this.items.get(id))
    );
  }

  private itemOf(event: JsonObject, item: JsonObject | undefined): OutputItem | Fault {
    if (!item) return new Fault("invalid", "an item is no object");
    return this.known({ ...event, item_id: event.item_id ?? item.id }) ?? this.begin(event, item);
  }

  private begin(event: JsonObject, item: JsonObject): OutputItem | Fault {
    const begun = this.ours(item);
    if (begun instanceof Fault) return begun;
    if (typeof event.output_index === "number") this.items.set(event.output_index, begun);
    const id = event.item_id ?? item.id;
    if (typeof id === "string" && id !== "") {
      this.items.set(id, begun);
      this.draft.count(id.length);
    }
    return begun;
  }

  private ours({ type, name, call_id, phase }: JsonObject): OutputItem | Fault {
    if (type === "message")
      return this.draft.beginMessage(phase === "commentary" || phase === "final_answer" ? phase : undefined);
    if (type === "reasoning") return this.draft.beginReasoning();
    if (type === "function_call" && typeof name === "string") {
      return this.draft.beginCall(name, typeof call_id === "string" && call_id !== "" ? call_id : undefined);
    }
    return new Fault(
      "invalid",
      `an item that nobody asked for: ${typeof type === "string" ? type.slice(0, 40) : "no type"}`,
    );
  }

  /** Adds the rest of the provider's whole item; an item that differs from its deltas is a fault. */
  private reconcile(event: JsonObject, item: JsonObject | undefined): Fault | undefined {
    const ours = this.itemOf(event, item);
    if (ours instanceof Fault) return ours;
    if (!item || item.type !== ours.type) return outOfOrder("an item");
    if (ours.type === "message")
      return this.parts(ours, ours.content, item.content, ({ type }) => (type === "output_text" ? type : "refusal"));
    return ours.type === "reasoning" ? this.reasoning(ours, item) : this.call(ours, item);
  }

  private reasoning(ours: Reasoning, { content, summary, encrypted_content }: JsonObject): Fault | undefined {
    if (typeof encrypted_content === "string") this.draft.encrypted(ours, encrypted_content);
    return (
      this.parts(ours, ours.summary, summary, () => "summary_text") ??
      this.parts(ours, ours.content, content, () => "reasoning_text")
    );
  }

  /** `own`: those that have come. */
  private parts(
    item: OutputItem,
    own: readonly OutputPart[],
    said: unknown,
    kindOf: (part: JsonObject) => PartKind,
  ): Fault | undefined {
    const parts = Array.isArray(said) ? said.map((part) => objectOf(part) ?? {}) : [];
    for (const [place, part] of parts.entries()) {
      if (this.draft.full) break;
      const kind = kindOf(part);
      const ours = own[place];
      // A text that is empty keeps its place among the parts.
      if (!ours && kind === "output_text" && item === this.draft.open) this.draft.beginPart(kind, place);
      const all = kind === "refusal" ? part.refusal : part.text;
      const fault = this.rest(item, { had: ours && textOf(ours), last: place >= own.length - 1, all }, (text) =>
        this.draft.add(kind, text, place),
      );
      if (fault) return fault;
    }
    return undefined;
  }

  private call(ours: FunctionCall, { arguments: text }: JsonObject): Fault | undefined {
    const said = { had: ours.arguments, last: true, all: text === "" ? null : text };
    return this.rest(ours, said, (rest) => this.draft.arguments(ours, rest));
  }

  /** `had` of `all` has come. Only the last part of an item can grow. */
  private rest(
    item: OutputItem,
    { had = "", last, all }: { had: string | undefined; last: boolean; all: unknown },
    add: (text: string) => void,
  ): Fault | undefined {
    if (all === undefined || all === null || all === had) return undefined;
    if (typeof all !== "string" || !all.startsWith(had))
      return new Fault("invalid", "the text at the end is not that of the deltas");
    if (item !== this.draft.open || !last) return outOfOrder("text");
    add(all.slice(had.length));
    return undefined;
  }
}

/** The place of a delta's part; 0 for servers that do not send it. */
function placeOf({ content_index, summary_index }: JsonObject): number {
  const place = content_index ?? summary_index;
  return typeof place === "number" ? place : 0;
}

function outOfOrder(what: string): Fault {
  return new Fault("invalid", `${what} out of order`);
}

function reasonOf(details: JsonObject | undefined): IncompleteReason {
  return details?.reason === "content_filter" ? "content_filter" : "max_output_tokens";
}
