/** Requests of the Responses protocol (`POST /responses`), nearly as they came. */
import type { LlmConfig } from "../../config/llm.ts";
import type { InputItem, LlmRequest, Part } from "../request.ts";
import { type JsonObject, present } from "./json.ts";

export function responsesBody(request: LlmRequest, provider: Pick<LlmConfig, "model">, stream: boolean): JsonObject {
  const { instructions, max_output_tokens, temperature, top_p, tools, tool_choice, parallel_tool_calls } = request;
  const { text, reasoning, user, safety_identifier, prompt_cache_key } = request;
  const plain = text.format.type === "text" && text.verbosity === null;
  return present({
    model: provider.model,
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
