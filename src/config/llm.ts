/** One `[llm."ID"]` table: the provider behind a language model, and its prices. */
import { type StaticDecode, Type } from "@sinclair/typebox";
import { flag, httpAddress, oneOf, rate, seconds, text, whole } from "./fields.ts";

const DAY_SECONDS = 86_400;

/** Fields of a request that an operator may refuse for a provider that would ignore them without a word. */
const REFUSABLE = [
  "images",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "text.format",
  "text.verbosity",
  "reasoning",
  "temperature",
  "top_p",
  "user",
  "safety_identifier",
  "prompt_cache_key",
] as const;

export type Refusable = (typeof REFUSABLE)[number];

export const LlmTable = Type.Object(
  {
    base_url: httpAddress(),
    protocol: oneOf(["responses", "chat"]),
    model: text(),
    /** Variable with the provider's key; absent: it needs none. */
    api_key_env: Type.Optional(text()),
    /** Connecting included. */
    first_byte_seconds: seconds(DAY_SECONDS, 60),
    idle_seconds: seconds(DAY_SECONDS, 60),
    total_seconds: seconds(DAY_SECONDS, 1800),
    /** How long after its submission a background job whose provider was away is sent again; 0: never. */
    job_retry_seconds: whole(0, DAY_SECONDS, 3600),
    /** Calls to the provider at once. */
    connections: whole(1, 65_535, 4096),
    /** Ask the provider for a stream, whatever the client asked for: only then can an answer be timed and stopped on its way. */
    stream: flag(true),
    /** What the chat protocol's limit of output tokens is called: servers know one of the names, or both. */
    output_limit_field: oneOf(["max_tokens", "max_completion_tokens"], "max_tokens"),
    /** Fields that the provider cannot honour: 422 for a request that has one. */
    refuses: Type.Array(Type.Unsafe<Refusable>(Type.String({ enum: [...REFUSABLE] })), {
      expected: `a list of ${REFUSABLE.map((field) => `"${field}"`).join(", ")}`,
      default: [],
    }),
    /** Images by `https:` addresses, which the provider then fetches. */
    image_urls: flag(false),
    message_margin_tokens: whole(0, 1_000_000, 16),
    image_tokens: whole(0, 1_000_000, 2048),
    input_usd_per_mtok: rate("0.60"),
    cached_input_usd_per_mtok: rate("0.11"),
    output_usd_per_mtok: rate("2.20"),
  },
  { additionalProperties: false, default: {} },
);

/** A provider. */
export type LlmConfig = ReturnType<typeof llmConfig>;

export function llmConfig(table: StaticDecode<typeof LlmTable>) {
  return Object.freeze({
    baseUrl: table.base_url,
    protocol: table.protocol,
    model: table.model,
    apiKeyEnv: table.api_key_env,
    firstByteSeconds: table.first_byte_seconds,
    idleSeconds: table.idle_seconds,
    totalSeconds: table.total_seconds,
    jobRetrySeconds: table.job_retry_seconds,
    connections: table.connections,
    stream: table.stream,
    outputLimitField: table.output_limit_field,
    refuses: Object.freeze(table.refuses),
    imageUrls: table.image_urls,
    messageMarginTokens: table.message_margin_tokens,
    imageTokens: table.image_tokens,
    /** Nano-dollars per token. */
    rates: Object.freeze({
      prompt: table.input_usd_per_mtok,
      cachedPrompt: table.cached_input_usd_per_mtok,
      completion: table.output_usd_per_mtok,
    }),
  });
}

/** What of the tables cannot be: the text says why. */
export function llmFault({ rates }: Pick<LlmConfig, "rates">): string | undefined {
  // What is held before a response is its input at the uncached rate, so that it never costs more than was held.
  if (rates.cachedPrompt <= rates.prompt) return undefined;
  return "cached_input_usd_per_mtok is above input_usd_per_mtok; a cached token must not cost more";
}
