/** Requests of the chat completions protocol (`POST /chat/completions`). */
import type { LlmConfig } from "../../config/llm.ts";
import type { InputItem, InputMessage, LlmRequest, Part, TextFormat } from "../request.ts";
import { type JsonObject, present } from "./json.ts";

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
  provider: Pick<LlmConfig, "model" | "outputLimitField">,
  stream: boolean,
): JsonObject {
  const { tools, tool_choice, text, reasoning, max_output_tokens } = request;
  const { temperature, top_p, parallel_tool_calls, user, safety_identifier, prompt_cache_key } = request;
  const format = responseFormat(text.format);
  return present({
    model: provider.model,
    messages: [...system(request), ...conversation(request.input)],
    [provider.outputLimitField]: max_output_tokens,
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
      open = undefined;
      assistant().reasoning_content = item.content.join("");
    } else if (item.type === "function_call") {
      const { call_id: id, name, arguments: given } = item;
      const message = assistant();
      message.tool_calls ??= [];
      message.tool_calls.push({ id, type: "function", function: { name, arguments: given } });
    } else if (item.type === "function_call_output") {
      open = undefined;
      messages.push({ role: "tool", tool_call_id: item.call_id, content: item.output });
    } else if (item.role === "assistant") {
      if (open?.content !== null || open.tool_calls) open = undefined;
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
  message.content = parts
    .map((part) => (part.type === "output_text" || part.type === "input_text" ? part.text : ""))
    .join("");
  const refusal = parts.map((part) => (part.type === "refusal" ? part.text : "")).join("");
  if (refusal !== "") message.refusal = refusal;
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
