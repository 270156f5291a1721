/** The chat completions protocol (`POST /chat/completions`): its requests, and its answers, whole or as a stream of chunks. */
import type { LlmConfig } from "../../config/llm.ts";
import { type JsonObject, objectOf, present } from "../json.ts";
import type { Draft } from "../output/draft.ts";
import type { FunctionCall, IncompleteReason } from "../output/object.ts";
import type { InputItem, InputMessage, LlmRequest, Part, TextFormat } from "../request.ts";
import { type LlmUsage, reportedUsage } from "../usage.ts";
import { Fault, providerError } from "./fault.ts";
import type { Dialect, Ending } from "./reader.ts";

/** The field of the request that this protocol lacks, or undefined. */
export function chatRefuses({ input, reasoning }: LlmRequest): string | undefined {
  if (reasoning.summary !== null) return "reasoning.summary";
  for (const [index, item] of input.entries()) {
    if (item.type === "message" && item.phase !== undefined) return `input[${index}].phase`;
    if (item.type === "reasoning" && item.encrypted_content !== null) return `input[${index}].encrypted_content`;
    if (item.type === "reasoning" && item.summary.length > 0) return `input[${index}].summary`;
  }
  return undefined;
}

export function chatBody(
  request: LlmRequest,
  { model, outputLimitField, stream }: Pick<LlmConfig, "model" | "outputLimitField" | "stream">,
): JsonObject {
  const { tools, tool_choice, text, reasoning, max_output_tokens } = request;
  const { temperature, top_p, parallel_tool_calls, user, safety_identifier, prompt_cache_key } = request;
  const format = responseFormat(text.format);
  return present({
    model,
    messages: [...system(request), ...conversation(request.input)],
    [outputLimitField]: max_output_tokens,
    stream,
    stream_options: stream ? { include_usage: true } : null,
    temperature,
    top_p,
    tools: tools.length === 0 ? null : tools.map(({ type, ...said }) => ({ type, function: present(said) })),
    tool_choice:
      tools.length === 0 ? null : typeof tool_choice === "string" ? tool_choice : namedChoice(tool_choice.name),
    parallel_tool_calls,
    response_format: format,
    verbosity: text.verbosity,
    reasoning_effort: reasoning.effort,
    user,
    safety_identifier,
    prompt_cache_key,
  });
}

function namedChoice(name: string): JsonObject {
  return { type: "function", function: { name } };
}

function responseFormat(format: TextFormat): JsonObject | null {
  if (format.type === "text") return null;
  if (format.type !== "json_schema") return { type: format.type };
  const { name, description, schema, strict } = format;
  return { type: "json_schema", json_schema: present({ name, description, schema, strict }) };
}

function system({ instructions }: LlmRequest): JsonObject[] {
  return instructions === null ? [] : [{ role: "system", content: instructions }];
}

interface Assistant {
  readonly role: "assistant";
  content: string | null;
  refusal?: string;
  reasoning_content?: string;
  tool_calls?: JsonObject[];
}

/** In this protocol a message, the calls after it and the reasoning before it are one message of the assistant. */
function conversation(input: readonly InputItem[]): JsonObject[] {
  const messages: (JsonObject | Assistant)[] = [];
  let open: Assistant | undefined;
  const assistant = (): Assistant => {
    if (open) return open;
    open = { role: "assistant", content: null };
    messages.push(open);
    return open;
  };
  for (const item of input) {
    if (item.type === "reasoning") {
      if (!open?.tool_calls) open = undefined;
      const message = assistant();
      message.reasoning_content = (message.reasoning_content ?? "") + item.content.join("");
    } else if (item.type === "function_call") {
      const { call_id: id, name, arguments: given } = item;
      const message = assistant();
      message.tool_calls ??= [];
      message.tool_calls.push({ id, type: "function", function: { name, arguments: given } });
    } else if (item.type === "function_call_output") {
      open = undefined;
      messages.push({ role: "tool", tool_call_id: item.call_id, content: item.output });
    } else if (item.role === "assistant") {
      // The outputs of calls stand directly behind their message, so that what follows a call goes into it.
      if (open?.content !== null && !open?.tool_calls) open = undefined;
      say(assistant(), item);
    } else {
      open = undefined;
      // Both roles mean the same. Templates of open models know `system`.
      messages.push({ role: item.role === "developer" ? "system" : item.role, content: content(item.content) });
    }
  }
  return messages as JsonObject[];
}

function say(message: Assistant, { content: parts }: InputMessage): void {
  message.content ??= "";
  for (const part of parts) {
    if (part.type === "refusal") message.refusal = (message.refusal ?? "") + part.text;
    else if (part.type !== "input_image") message.content += part.text;
  }
}

function content(parts: readonly Part[]): string | JsonObject[] {
  const [only] = parts;
  if (only && parts.length === 1 && only.type !== "input_image") return only.text;
  return parts.map((part) => {
    if (part.type !== "input_image") return { type: "text", text: part.text };
    const { image_url: url, detail } = part;
    return { type: "image_url", image_url: detail === null ? { url } : { url, detail } };
  });
}

/** Finish reasons of incomplete answers. One that is not known ends a whole answer, as `stop` does. */
const INCOMPLETE: ReadonlyMap<unknown, IncompleteReason> = new Map([
  ["length", "max_output_tokens"],
  ["content_filter", "content_filter"],
]);

/** Finish reasons of a provider that could not go on. */
const FAILED: readonly unknown[] = ["error", "abort", "insufficient_system_resource"];

/** Fields of a piece that hold output. */
const OUTPUT = ["content", "refusal", "reasoning_content", "reasoning", "tool_calls"] as const;

export class ChatDialect implements Dialect {
  private finish: unknown;
  private usage: LlmUsage | undefined;
  /** The open call, its place among the calls, and the provider's id of it. */
  private call: { readonly item: FunctionCall; readonly index: number; readonly id: string | undefined } | undefined;

  constructor(private readonly draft: Draft) {}

  event(value: unknown): Fault | undefined {
    return this.take(value, "delta");
  }

  whole(value: unknown): Fault | undefined {
    return this.take(value, "message");
  }

  ending(): Ending | Fault {
    if (this.finish === undefined) return new Fault("invalid", "the answer ends without a finish_reason");
    if (FAILED.includes(this.finish)) return new Fault("unavailable", `finish_reason ${this.finish}`);
    return { incomplete: INCOMPLETE.get(this.finish), usage: this.usage };
  }

  private take(value: unknown, field: "delta" | "message"): Fault | undefined {
    const said = objectOf(value);
    if (!said) return new Fault("invalid", "the answer is no object");
    if (said.error) return providerError(said.error);
    const usage = objectOf(said.usage);
    if (usage) this.usage = reportedUsage(usage);
    // Gateways send objects of their own kinds between the chunks.
    if (field === "delta" && (said.choices ?? null) === null) return undefined;
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
    if (typeof reasoning === "string") this.draft.add("reasoning_text", reasoning);
    if (typeof content === "string") this.draft.add("output_text", content);
    if (typeof refusal === "string") this.draft.add("refusal", refusal);
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
    const id = typeof call.id === "string" && call.id !== "" ? call.id : undefined;
    const named = typeof name === "string" && name !== "";
    // Some servers number no calls, and some give every piece of one call another id.
    const renewed = named && id !== undefined && id !== this.call?.id;
    if (renewed || this.call?.index !== index || this.call.item !== this.draft.open) {
      // Calls come one after another. A name begins the next one.
      if (!named) return new Fault("invalid", "a tool call without a name, or out of order");
      if (this.call && (index < this.call.index || (index === this.call.index && !renewed)))
        return new Fault("invalid", "tool calls out of order");
      this.call = { item: this.draft.beginCall(name, id), index, id };
    }
    this.draft.arguments(this.call.item, text ?? "");
    return undefined;
  }
}

function isOutput(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}
