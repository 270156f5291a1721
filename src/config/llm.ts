/** One `[llm."ID"]` table: the provider behind a language model, and its prices. */
import { type StaticDecode, Type } from "@sinclair/typebox";
import { either, httpAddress, rate, seconds, text, whole } from "./fields.ts";

const DAY_SECONDS = 86_400;

export const LlmTable = Type.Object(
  {
    base_url: httpAddress(),
    protocol: either("responses", "chat"),
    model: text(),
    api_key_env: text(),
    connect_seconds: seconds(DAY_SECONDS, 5),
    first_byte_seconds: seconds(DAY_SECONDS, 60),
    idle_seconds: seconds(DAY_SECONDS, 60),
    total_seconds: seconds(DAY_SECONDS, 1800),
    message_margin_tokens: whole(0, 1_000_000, 16),
    image_tokens: whole(0, 1_000_000, 2048),
    input_usd_per_mtok: rate(),
    cached_input_usd_per_mtok: rate(),
    output_usd_per_mtok: rate(),
  },
  { additionalProperties: false, default: {} },
);

/** Rates are nano-dollars per token. */
export function llmConfig(table: StaticDecode<typeof LlmTable>) {
  return Object.freeze({
    baseUrl: table.base_url,
    protocol: table.protocol,
    model: table.model,
    apiKeyEnv: table.api_key_env,
    connectSeconds: table.connect_seconds,
    firstByteSeconds: table.first_byte_seconds,
    idleSeconds: table.idle_seconds,
    totalSeconds: table.total_seconds,
    messageMarginTokens: table.message_margin_tokens,
    imageTokens: table.image_tokens,
    inputNanosPerToken: table.input_usd_per_mtok,
    cachedInputNanosPerToken: table.cached_input_usd_per_mtok,
    outputNanosPerToken: table.output_usd_per_mtok,
  });
}
