/** Tokens of a response: the bound that is held before the call, what the provider reports, and our estimate where it reports nothing. */
import type { Usage } from "../charge/store/records.ts";
import type { LlmConfig } from "../config/llm.ts";
import { LIMITS } from "../limits.ts";
import { type JsonObject, objectOf } from "./json.ts";
import type { LlmRequest } from "./request.ts";

export interface LlmUsage extends Usage {
  /** Completion tokens as well. */
  readonly reasoningTokens: number;
}

/**
 * At least as many tokens as the input can have. A byte-level tokenizer makes at most one token of a byte; roles and separators of
 * a message, and an image, cost what the operator says. The bytes of data: URLs do not count.
 */
export function inputTokensMax(
  { input, instructions, tools, text }: LlmRequest,
  { messageMarginTokens, imageTokens }: Pick<LlmConfig, "messageMarginTokens" | "imageTokens">,
): number {
  let bytes = Buffer.byteLength(instructions ?? "");
  let images = 0;
  // The instructions are a message as well.
  let messages = 1;
  for (const item of input) {
    messages += 1;
    if (item.type !== "message") {
      bytes += jsonBytes(item);
      continue;
    }
    for (const part of item.content) {
      if (part.type !== "input_image") bytes += Buffer.byteLength(part.text);
      else {
        images += 1;
        if (!/^data:/i.test(part.image_url)) bytes += Buffer.byteLength(part.image_url);
      }
    }
  }
  if (tools.length > 0) bytes += jsonBytes(tools);
  if (text.format.type === "json_schema") bytes += jsonBytes(text);
  return bytes + messages * messageMarginTokens + images * imageTokens;
}

/** Bytes in a token of ordinary text, by the rule of thumb for byte-level tokenizers. */
const BYTES_PER_TOKEN = 4;

/** The usage that is charged when the provider sends none. */
export function estimatedUsage(inputMax: number, outputBytes: number): LlmUsage {
  return {
    promptTokens: Math.ceil(inputMax / BYTES_PER_TOKEN),
    cachedTokens: 0,
    completionTokens: Math.ceil(outputBytes / BYTES_PER_TOKEN),
    reasoningTokens: 0,
  };
}

/** What a provider says it used, by the names of either protocol; undefined where it is no usage. An explicit 0 is a number. */
export function reportedUsage(said: JsonObject): LlmUsage | undefined {
  const input = said.input_tokens ?? said.prompt_tokens;
  const output = said.output_tokens ?? said.completion_tokens;
  const details = objectOf(said.input_tokens_details ?? said.prompt_tokens_details);
  // DeepSeek and Moonshot have names of their own for it.
  const cached = details?.cached_tokens ?? said.prompt_cache_hit_tokens ?? said.cached_tokens ?? 0;
  const reasoning = objectOf(said.output_tokens_details ?? said.completion_tokens_details)?.reasoning_tokens ?? 0;
  if (!isCount(input) || !isCount(output) || !isCount(cached) || !isCount(reasoning)) return undefined;
  // Parts of a whole are never more than the whole.
  const [cachedTokens, reasoningTokens] = [Math.min(cached, input), Math.min(reasoning, output)];
  return { promptTokens: input, cachedTokens, completionTokens: output, reasoningTokens };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= LIMITS.llmTokensMax;
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
