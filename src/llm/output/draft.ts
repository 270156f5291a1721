/**
 * The output of a response while it arrives. Pieces of a provider's answer become items and events, in the order of the Responses API,
 * whatever the provider's order is. One item is open at a time; the next one closes it.
 */
import { LIMITS } from "../../limits.ts";
import type { IdPrefix } from "../../std/ids.ts";
import type { ItemEvent } from "./events.ts";
import {
  type FunctionCall,
  type ItemStatus,
  type Message,
  type OutputItem,
  type Reasoning,
  textPart,
} from "./object.ts";

export interface DraftOptions {
  readonly makeId: (prefix: IdPrefix) => string;
  /** Receives the events; undefined for an answer without a stream. */
  readonly emit: ((event: ItemEvent) => void) | undefined;
}

const NONE: readonly never[] = [];

/** Characters that an item or a part counts besides its text, since empty ones need memory too. */
const FRAME_CHARS = 64;

export class Draft {
  readonly output: OutputItem[] = [];
  /** Characters of text, reasoning and arguments. */
  length = 0;
  /** Characters of names, ids and frames. */
  private besides = 0;
  /** The open part of the open item. */
  private part: "output_text" | "refusal" | "reasoning_text" | "summary_text" | undefined;
  /** The provider's number of the open part. */
  private place = 0;

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

  /** Adds to the open message, or begins one. A `place` other than that of the open part begins the next part. */
  text(delta: string, place = 0): void {
    if (delta === "") return;
    const message = this.message();
    const last = this.messagePart(message, "output_text", place);
    if (last?.type !== "output_text") return;
    last.text += delta;
    this.length += delta.length;
    if (!this.options.emit) return;
    // Runs once for each token, so it makes no object but the event.
    const output_index = this.output.length - 1;
    const content_index = message.content.length - 1;
    const { id: item_id } = message;
    this.emit({ type: "response.output_text.delta", item_id, output_index, content_index, delta, logprobs: NONE });
  }

  /** A part that may stay empty. */
  beginText(place = 0): void {
    this.messagePart(this.message(), "output_text", place);
  }

  refusal(delta: string, place = 0): void {
    if (delta === "") return;
    const message = this.message();
    const last = this.messagePart(message, "refusal", place);
    if (last?.type !== "refusal") return;
    last.refusal += delta;
    this.length += delta.length;
    this.emit({ type: "response.refusal.delta", ...this.inPart(message), delta });
  }

  reasoning(delta: string, place = 0): void {
    if (delta === "") return;
    const item = this.reasoningItem();
    if (this.begins("reasoning_text", place)) {
      item.content.push({ type: "reasoning_text", text: "" });
      const part = { type: "reasoning_text", text: "" } as const;
      this.emit({ type: "response.content_part.added", ...this.inPart(item), part });
    }
    const last = item.content.at(-1);
    if (!last) return;
    last.text += delta;
    this.length += delta.length;
    this.emit({ type: "response.reasoning_text.delta", ...this.inPart(item), delta });
  }

  summary(delta: string, place: number): void {
    const item = this.reasoningItem();
    if (this.begins("summary_text", place)) {
      item.summary.push({ type: "summary_text", text: "" });
      const part = { type: "summary_text", text: "" } as const;
      this.emit({ type: "response.reasoning_summary_part.added", ...this.inSummary(item), part });
    }
    const last = item.summary.at(-1);
    if (!last || delta === "") return;
    last.text += delta;
    this.length += delta.length;
    this.emit({ type: "response.reasoning_summary_text.delta", ...this.inSummary(item), delta });
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
    if (item.type === "message" && item.content.length === 0) this.beginText();
    this.closePart();
    if (item.type === "function_call") {
      const { name, arguments: given } = item;
      this.emit({ type: "response.function_call_arguments.done", ...this.inItem(item), name, arguments: given });
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
    this.part = undefined;
    this.count(FRAME_CHARS);
    this.output.push(item);
    // A copy, since the event is printed later, when the item has grown.
    this.emit({ type: "response.output_item.added", output_index: this.output.length - 1, item: copyOf(item) });
    return item;
  }

  private message(): Message {
    return this.open?.type === "message" ? this.open : this.beginMessage();
  }

  private reasoningItem(): Reasoning {
    return this.open?.type === "reasoning" ? this.open : this.beginReasoning();
  }

  private messagePart(
    message: Message,
    kind: "output_text" | "refusal",
    place: number,
  ): Message["content"][number] | undefined {
    if (this.begins(kind, place)) {
      const fresh = () => (kind === "output_text" ? textPart("") : ({ type: "refusal", refusal: "" } as const));
      message.content.push(fresh());
      this.emit({ type: "response.content_part.added", ...this.inPart(message), part: fresh() });
    }
    return message.content.at(-1);
  }

  /** Whether a part has to be begun. If so, the open one is closed. */
  private begins(kind: NonNullable<Draft["part"]>, place: number): boolean {
    if (this.part === kind && this.place === place) return false;
    this.closePart();
    this.count(FRAME_CHARS);
    this.part = kind;
    this.place = place;
    return true;
  }

  private closePart(): void {
    const item = this.open;
    if (item?.type === "message") this.closeMessagePart(item);
    else if (item?.type === "reasoning") this.closeReasoningPart(item);
    this.part = undefined;
  }

  private closeMessagePart(message: Message): void {
    const part = message.content.at(-1);
    if (!part || this.part === undefined) return;
    const at = this.inPart(message);
    if (part.type === "output_text")
      this.emit({ type: "response.output_text.done", ...at, text: part.text, logprobs: [] });
    else this.emit({ type: "response.refusal.done", ...at, refusal: part.refusal });
    this.emit({ type: "response.content_part.done", ...at, part });
  }

  private closeReasoningPart(item: Reasoning): void {
    if (this.part === "reasoning_text") {
      const part = item.content.at(-1);
      if (!part) return;
      const at = this.inPart(item);
      this.emit({ type: "response.reasoning_text.done", ...at, text: part.text });
      this.emit({ type: "response.content_part.done", ...at, part });
    } else if (this.part === "summary_text") {
      const part = item.summary.at(-1);
      if (!part) return;
      const at = this.inSummary(item);
      this.emit({ type: "response.reasoning_summary_text.done", ...at, text: part.text });
      this.emit({ type: "response.reasoning_summary_part.done", ...at, part });
    }
  }

  private inItem({ id }: OutputItem): { item_id: string; output_index: number } {
    return { item_id: id, output_index: this.output.length - 1 };
  }

  private inPart(item: Message | Reasoning): { item_id: string; output_index: number; content_index: number } {
    return { ...this.inItem(item), content_index: item.content.length - 1 };
  }

  private inSummary(item: Reasoning): { item_id: string; output_index: number; summary_index: number } {
    return { ...this.inItem(item), summary_index: item.summary.length - 1 };
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
