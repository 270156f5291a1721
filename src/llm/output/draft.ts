/**
 * The output of a response while it arrives. Pieces of a provider's answer become items and events, in the order of the Responses API,
 * whatever the provider's order is. One item is open at a time; the next one closes it.
 */
import { LIMITS } from "../../limits.ts";
import type { IdPrefix } from "../../std/ids.ts";
import type { ItemEvent } from "./events.ts";
import type { FunctionCall, ItemStatus, Message, OutputItem, OutputPart, Reasoning } from "./object.ts";

export interface DraftOptions {
  readonly makeId: (prefix: IdPrefix) => string;
  /** Receives the events; undefined for an answer without a stream. */
  readonly emit: ((event: ItemEvent) => void) | undefined;
}

/** Each kind of part: its item, and the names of its events and of its number in them. */
export const PARTS = {
  output_text: contentPart("message", "output_text"),
  refusal: contentPart("message", "refusal"),
  reasoning_text: contentPart("reasoning", "reasoning_text"),
  summary_text: {
    ...contentPart("reasoning", "reasoning_summary_text"),
    index: "summary_index",
    part: "response.reasoning_summary_part",
  },
} as const;

function contentPart<const Item extends "message" | "reasoning">(item: Item, name: string) {
  const [delta, done] = [`response.${name}.delta`, `response.${name}.done`];
  return { item, index: "content_index", part: "response.content_part", delta, done };
}

export type PartKind = keyof typeof PARTS;

interface OpenPart {
  readonly kind: PartKind;
  /** The provider's number of it. */
  readonly place: number;
  /** Its place, by the names that its events have for it. */
  readonly at: { readonly item_id: string; readonly output_index: number; readonly content_index?: number };
  readonly part: OutputPart;
}

/** Characters that an item or a part counts besides its text, since empty ones need memory too. */
const FRAME_CHARS = 64;

const NONE: never[] = [];

export class Draft {
  readonly output: OutputItem[] = [];
  /** Characters of text, reasoning and arguments. */
  length = 0;
  /** Characters of names, ids and frames. */
  private besides = 0;
  private openPart: OpenPart | undefined;

  constructor(private readonly options: DraftOptions) {}

  /** The item that is open. */
  get open(): OutputItem | undefined {
    const last = this.output.at(-1);
    return last?.status === "in_progress" ? last : undefined;
  }

  /** Whether the draft holds more than any answer may have. */
  get full(): boolean {
    return this.length + this.besides > LIMITS.llmOutputCharsMax;
  }

  /** Counts characters that are held besides the text. */
  count(chars: number): void {
    this.besides += chars;
  }

  beginMessage(phase?: "commentary" | "final_answer"): Message {
    const id = this.options.makeId("msg_");
    return this.begin({
      type: "message",
      id,
      role: "assistant",
      status: "in_progress",
      content: [],
      ...(phase && { phase }),
    });
  }

  beginReasoning(): Reasoning {
    const id = this.options.makeId("rs_");
    return this.begin({
      type: "reasoning",
      id,
      status: "in_progress",
      summary: [],
      content: [],
      encrypted_content: null,
    });
  }

  beginCall(name: string, callId: string | undefined): FunctionCall {
    const id = this.options.makeId("fc_");
    const call_id = callId ?? this.options.makeId("call_");
    this.count(name.length + call_id.length);
    return this.begin({ type: "function_call", id, call_id, name, arguments: "", status: "in_progress" });
  }

  /** Adds to the open part, or begins the next one: that of another kind, or of another `place`. */
  add(kind: PartKind, delta: string, place = 0): void {
    if (delta === "") return;
    const { at, part } = this.beginPart(kind, place);
    if (part.type === "refusal") part.refusal += delta;
    else part.text += delta;
    this.length += delta.length;
    if (kind === "output_text") {
      // Once for each token, so nothing is spread.
      const { item_id, output_index, content_index = 0 } = at;
      this.emit({ type: "response.output_text.delta", item_id, output_index, content_index, delta, logprobs: NONE });
    } else this.emit({ type: PARTS[kind].delta, ...at, delta } as ItemEvent);
  }

  /** A part that was begun may stay empty. */
  beginPart(kind: PartKind, place = 0): OpenPart {
    const { openPart } = this;
    if (openPart?.kind === kind && openPart.place === place) return openPart;
    const item = this.itemOf(kind);
    this.closePart();
    this.count(FRAME_CHARS);
    const parts = (item.type === "reasoning" && kind === "summary_text" ? item.summary : item.content) as OutputPart[];
    const part = emptyPart(kind);
    const { index, part: name } = PARTS[kind];
    const at = { item_id: item.id, output_index: this.output.length - 1, [index]: parts.length };
    parts.push(part);
    // A copy, since the event is printed later, when the part has grown.
    this.emit({ type: `${name}.added`, ...at, part: { ...part } } as ItemEvent);
    this.openPart = { kind, place, at, part };
    return this.openPart;
  }

  /** Adds to the arguments of the open call. */
  arguments(call: FunctionCall, delta: string): void {
    if (delta === "") return;
    call.arguments += delta;
    this.length += delta.length;
    this.emit({ type: "response.function_call_arguments.delta", ...this.inItem(call), delta });
  }

  /** Reasoning that only the provider can read. The last one counts. */
  encrypted(item: Reasoning, content: string): void {
    this.count(content.length - (item.encrypted_content?.length ?? 0));
    item.encrypted_content = content;
  }

  /** Ends the open item. */
  close(status: Exclude<ItemStatus, "in_progress"> = "completed"): void {
    const item = this.open;
    if (!item) return;
    // Clients read a message's first part.
    if (item.type === "message" && item.content.length === 0) this.beginPart("output_text");
    this.closePart();
    if (item.type === "function_call") {
      // Clients parse the arguments of a call that was made.
      if (item.arguments === "" && status === "completed") this.arguments(item, "{}");
      const { name, arguments: given } = item;
      const said = { name, arguments: given };
      this.emit({ type: "response.function_call_arguments.done", ...this.inItem(item), ...said });
    }
    item.status = status;
    this.emit({ type: "response.output_item.done", output_index: this.output.length - 1, item });
  }

  /** Ends the answer. An answer without output is an empty message. */
  finish(status: Exclude<ItemStatus, "in_progress">): void {
    if (this.output.length === 0) this.beginMessage();
    this.close(status);
  }

  /** Marks the open item as incomplete, without an event; the caller reports the failure. */
  abandon(): void {
    const item = this.open;
    if (item) item.status = "incomplete";
  }

  private begin<Item extends OutputItem>(item: Item): Item {
    this.close();
    this.count(FRAME_CHARS);
    this.output.push(item);
    // A copy, since the event is printed later, when the item has grown.
    this.emit({ type: "response.output_item.added", output_index: this.output.length - 1, item: copyOf(item) });
    return item;
  }

  private itemOf(kind: PartKind): Message | Reasoning {
    const { item } = PARTS[kind];
    const { open } = this;
    if (open?.type === item) return open as Message | Reasoning;
    return item === "message" ? this.beginMessage() : this.beginReasoning();
  }

  private closePart(): void {
    if (!this.openPart) return;
    const { kind, at, part } = this.openPart;
    this.openPart = undefined;
    const said = part.type === "refusal" ? { refusal: part.refusal } : { text: part.text };
    const event = { type: PARTS[kind].done, ...at, ...said };
    this.emit((kind === "output_text" ? { ...event, logprobs: NONE } : event) as ItemEvent);
    this.emit({ type: `${PARTS[kind].part}.done`, ...at, part } as ItemEvent);
  }

  private inItem({ id }: OutputItem): { item_id: string; output_index: number } {
    return { item_id: id, output_index: this.output.length - 1 };
  }

  private emit(event: ItemEvent): void {
    this.options.emit?.(event);
  }
}

/** An item's form before it has content. */
function copyOf(item: OutputItem): OutputItem {
  if (item.type === "message") return { ...item, content: [] };
  return item.type === "reasoning" ? { ...item, content: [], summary: [] } : { ...item };
}

function emptyPart(kind: PartKind): OutputPart {
  if (kind === "output_text") return { type: kind, text: "", annotations: NONE, logprobs: NONE };
  return kind === "refusal" ? { type: kind, refusal: "" } : ({ type: kind, text: "" } as OutputPart);
}
