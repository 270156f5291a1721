/** Answers of the chat completions protocol: `chat.completion` objects and streams of `chat.completion.chunk`. */
import type { Draft } from "../output/draft.ts";
import type { FunctionCall } from "../output/items.ts";
import type { IncompleteReason } from "../output/object.ts";
import { type LlmUsage, reportedUsage } from "../usage.ts";
import { Fault, providerError } from "./fault.ts";
import { type JsonObject, objectOf } from "./json.ts";
import type { Dialect, Ending } from "./reader.ts";

/** Finish reasons, and why the answer is then incomplete. */
const FINISHES: ReadonlyMap<unknown, IncompleteReason | undefined> = new Map([
  ["stop", undefined],
  ["tool_calls", undefined],
  ["function_call", undefined],
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
]);

/** Fields of a piece that hold output. */
const OUTPUT = ["content", "refusal", "reasoning_content", "reasoning", "tool_calls"] as const;

export class ChatDialect implements Dialect {
  private finish: unknown;
  private usage: LlmUsage | undefined;
  /** The open call and its place among the calls. */
  private call: { readonly item: FunctionCall; readonly index: number } | undefined;

  constructor(
    private readonly draft: Draft,
    /** The provider's key, which no client may read. */
    private readonly secret: string | undefined,
  ) {}

  event(value: unknown): Fault | undefined {
    return this.take(value, "delta");
  }

  whole(value: unknown): Fault | undefined {
    return this.take(value, "message");
  }

  ending(): Ending | Fault {
    if (this.finish === undefined) return new Fault("invalid", "the answer ends without a finish_reason");
    const { finish } = this;
    if (!FINISHES.has(finish))
      return new Fault(
        "invalid",
        `finish_reason ${typeof finish === "string" ? finish.slice(0, 40) : "that is no text"}`,
      );
    return { incomplete: FINISHES.get(this.finish), usage: this.usage };
  }

  private take(value: unknown, field: "delta" | "message"): Fault | undefined {
    const said = objectOf(value);
    if (!said) return new Fault("invalid", "the answer is no object");
    if (said.error) return providerError(said.error, this.secret);
    const usage = objectOf(said.usage);
    if (usage) this.usage = usageOf(usage);
    if (!Array.isArray(said.choices)) return new Fault("invalid", "the answer has no choices");
    // The request asks for one choice. The last chunk may have none and only the usage.
    const choice = objectOf(said.choices[0]);
    if (!choice) return undefined;
    const piece = objectOf(choice[field]);
    if (piece) {
      if (this.finish !== undefined && OUTPUT.some((key) => isOutput(piece[key])))
        return new Fault("invalid", "output after the finish_reason");
      const fault = this.piece(piece);
      if (fault) return fault;
    }
    const { finish_reason: finish } = choice;
    // Some servers send an empty text in place of null.
    if (finish !== null && finish !== undefined && finish !== "") this.finish = finish;
    return undefined;
  }

  private piece(piece: JsonObject): Fault | undefined {
    const { content, refusal, tool_calls: calls } = piece;
    const reasoning = piece.reasoning_content ?? piece.reasoning;
    for (const text of [content, refusal, reasoning]) {
      if (text !== undefined && text !== null && typeof text !== "string")
        return new Fault("invalid", "output that is no text");
    }
    if (typeof reasoning === "string") this.draft.reasoning(reasoning);
    if (typeof content === "string") this.draft.text(content);
    if (typeof refusal === "string") this.draft.refusal(refusal);
    if (calls === undefined || calls === null) return undefined;
    if (!Array.isArray(calls)) return new Fault("invalid", "tool_calls is no array");
    for (const [place, call] of calls.entries()) {
      if (this.draft.full) break;
      const fault = this.toolCall(objectOf(call), place);
      if (fault) return fault;
    }
    return undefined;
  }

  private toolCall(call: JsonObject | undefined, place: number): Fault | undefined {
    const said = objectOf(call?.function);
    if (!call || !said) return new Fault("invalid", "a tool call without its function");
    const index = typeof call.index === "number" ? call.index : place;
    const { name, arguments: text = "" } = said;
    if (text !== null && typeof text !== "string") return new Fault("invalid", "arguments that are no text");
    if (this.call?.index !== index || this.call.item !== this.draft.open) {
      // Calls come one after another. A name begins the next one.
      if (typeof name !== "string" || name === "")
        return new Fault("invalid", "a tool call without a name, or out of order");
      if (this.call && index <= this.call.index) return new Fault("invalid", "tool calls out of order");
      this.call = {
        item: this.draft.beginCall(name, typeof call.id === "string" && call.id !== "" ? call.id : undefined),
        index,
      };
    }
    this.draft.arguments(this.call.item, text ?? "");
    return undefined;
  }
}

function isOutput(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

function usageOf(usage: JsonObject): LlmUsage | undefined {
  return reportedUsage({
    input: usage.prompt_tokens,
    cached: objectOf(usage.prompt_tokens_details)?.cached_tokens,
    output: usage.completion_tokens,
    reasoning: objectOf(usage.completion_tokens_details)?.reasoning_tokens,
  });
}
