/**
 * Proves that a stream's events are complete and in order. What begins ends, in the reverse order, under the same ids and places,
 * and says at its end what its deltas said. The idea is that of vLLM's `validate_streaming_event_stack`.
 */
import { expect } from "bun:test";
import type { OutputItem, ResponseObject } from "../../src/llm/output/object.ts";
import { textIn } from "./asking.ts";
import type { Came } from "./stage.ts";

/** What each kind of part calls its deltas, the field of its text, and the field of its place. */
const PARTS: Readonly<Record<string, { readonly delta: string; readonly text: string; readonly at: string }>> = {
  output_text: { delta: "response.output_text", text: "text", at: "content_index" },
  refusal: { delta: "response.refusal", text: "refusal", at: "content_index" },
  reasoning_text: { delta: "response.reasoning_text", text: "text", at: "content_index" },
  summary_text: { delta: "response.reasoning_summary_text", text: "text", at: "summary_index" },
};

interface OpenItem {
  readonly item: OutputItem;
  readonly parts: { content_index: object[]; summary_index: object[] };
  part: { readonly type: string; readonly index: number; text: string; said: boolean } | undefined;
  arguments: string;
  argumentsSaid: boolean;
}

/** Returns the text of all deltas of text. */
export function expectStack(events: readonly Came[], terminal = "response.completed"): string {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
  const [created, second] = events;
  expect(created?.type).toBe("response.created");
  expect(second?.type).toBeOneOf(["response.in_progress", "response.queued"]);
  const begun = created?.response as ResponseObject;
  expect(second?.response).toEqual(begun);
  expect([begun.output, begun.output_text, begun.usage, begun.error]).toEqual([[], "", null, null]);
  const last = events.at(-1);
  expect(last?.type).toBe(terminal);
  const walk = new Walk(begun.id);
  for (const event of events.slice(2, -1)) walk.take(event);
  const ended = last?.response as ResponseObject;
  expect(Object.keys(ended)).toEqual(Object.keys(begun));
  expect([ended.id, ended.created_at, ended.model]).toEqual([begun.id, begun.created_at, begun.model]);
  if (terminal === "response.failed") return walk.text;
  expect(walk.open).toBeUndefined();
  expect(ended.output).toEqual(walk.items);
  expect(ended.output_text).toBe(walk.text);
  expect(textIn(ended.output.filter(({ type }) => type === "message"))).toContain(walk.text);
  return walk.text;
}

class Walk {
  readonly items: OutputItem[] = [];
  open: OpenItem | undefined;
  text = "";
  private readonly ids: Set<string>;

  constructor(responseId: string) {
    this.ids = new Set([responseId]);
  }

  take(event: Came): void {
    const { type } = event;
    const { open } = this;
    if (type === "response.output_item.added") this.begin(event);
    else if (!open) throw new Error(`${type} outside of an item`);
    else {
      expect(event.output_index).toBe(this.items.length);
      if (type === "response.output_item.done") this.end(event, open);
      else this.inItem(event, open);
    }
  }

  private inItem(event: Came, open: OpenItem): void {
    const { type } = event;
    expect(event.item_id).toBe(open.item.id);
    if (/_part\.added$/.test(type)) beginPart(event, open);
    else if (/_part\.done$/.test(type)) endPart(event, open);
    else if (type.startsWith("response.function_call_arguments.")) callOf(event, open);
    else this.inPart(event, open);
  }

  private begin(event: Came): void {
    const item = event.item as OutputItem;
    expect([this.open, event.output_index, item.status]).toEqual([undefined, this.items.length, "in_progress"]);
    expect(this.ids.has(item.id)).toBe(false);
    this.ids.add(item.id);
    if (item.type === "message") expect([item.role, item.content]).toEqual(["assistant", []]);
    if (item.type === "reasoning") expect([item.content, item.summary]).toEqual([[], []]);
    if (item.type === "function_call") expect(item.arguments).toBe("");
    this.open = {
      item,
      parts: { content_index: [], summary_index: [] },
      part: undefined,
      arguments: "",
      argumentsSaid: false,
    };
  }

  private end(event: Came, { item: begun, parts, part, arguments: given, argumentsSaid }: OpenItem): void {
    const item = event.item as OutputItem;
    expect(part).toBeUndefined();
    expect([item.id, item.type]).toEqual([begun.id, begun.type]);
    expect(item.status).toBeOneOf(["completed", "incomplete"]);
    if (item.type === "message") expect(item.content as unknown).toEqual(parts.content_index);
    if (item.type === "message") expect(parts.content_index).not.toBeEmpty();
    if (item.type === "reasoning")
      expect([item.content, item.summary] as unknown).toEqual([parts.content_index, parts.summary_index]);
    if (item.type === "function_call") expect([item.arguments, argumentsSaid]).toEqual([given, true]);
    this.items.push(item);
    this.open = undefined;
  }

  private inPart(event: Came, { part }: OpenItem): void {
    const kind = PARTS[part?.type ?? ""];
    if (!part || !kind) throw new Error(`${event.type} outside of a part`);
    expect([event[kind.at], part.said]).toEqual([part.index, false]);
    if (event.type === `${kind.delta}.done`) {
      expect(event[kind.text]).toBe(part.text);
      part.said = true;
      return;
    }
    expect([event.type, typeof event.delta, event.delta === ""]).toEqual([`${kind.delta}.delta`, "string", false]);
    part.text += String(event.delta);
    if (part.type === "output_text") this.text += String(event.delta);
  }
}

function beginPart(event: Came, open: OpenItem): void {
  const part = event.part as { type: string } & Record<string, unknown>;
  const kind = PARTS[part.type];
  if (!kind) throw new Error(`a part of the kind ${part.type}`);
  const index = open.parts[kind.at as keyof OpenItem["parts"]].length;
  expect([open.part, event[kind.at], part[kind.text]]).toEqual([undefined, index, ""]);
  open.part = { type: part.type, index, text: "", said: false };
}

function endPart(event: Came, open: OpenItem): void {
  const part = event.part as { type: string } & Record<string, unknown>;
  const kind = PARTS[part.type];
  if (!kind || !open.part) throw new Error(`${event.type} outside of a part`);
  expect([part.type, event[kind.at], part[kind.text], open.part.said]).toEqual([
    open.part.type,
    open.part.index,
    open.part.text,
    true,
  ]);
  open.parts[kind.at as keyof OpenItem["parts"]].push(part);
  open.part = undefined;
}

function callOf(event: Came, open: OpenItem): void {
  expect([open.item.type, open.argumentsSaid]).toEqual(["function_call", false]);
  if (event.type.endsWith(".delta")) open.arguments += String(event.delta);
  else {
    expect(event.arguments).toBe(open.arguments);
    open.argumentsSaid = true;
  }
}
