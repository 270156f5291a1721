/** The checks of `POST /v1/responses`: from a body to a complete request, or the first failure. */

import type { JsonObject } from "../../http/json.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { nearest } from "../../std/nearest.ts";
import { LLM } from "../errors.ts";
import { isBackground, isLlmId, LLM_IDS, type LlmId, outputTokensDefault } from "../models.ts";
import type { Provider } from "../provider/provider.ts";
import type { LlmRequest } from "../request.ts";
import { readInput, userMessage } from "./input.ts";
import { Reading } from "./reading.ts";
import { readReasoning, readText, readToolChoice, readTools } from "./tools.ts";

/** Accepted at the top of a body. */
const FIELDS = [
  "model",
  "input",
  "instructions",
  "stream",
  "max_output_tokens",
  "temperature",
  "top_p",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "text",
  "reasoning",
  "metadata",
  "truncation",
  "store",
  "background",
  "user",
  "safety_identifier",
  "prompt_cache_key",
] as const;

const NAME_CHARS_MAX = 512;

/** A field that the model's provider cannot honour is refused as well. */
export function readRequest(
  body: JsonObject,
  providers: ReadonlyMap<LlmId, Pick<Provider, "refuses">>,
): LlmRequest | Failure {
  const model = readModel(body.model);
  if (model instanceof Failure) return model;
  const reading = new Reading();
  if (body.previous_response_id !== undefined && body.previous_response_id !== null) {
    reading.bad("previous_response_id", "no model supports it; send the whole conversation as input");
  }
  reading.known(body, "", [...FIELDS, "previous_response_id"]);
  const input = readInput(reading, body.input);
  const instructions = reading.optionalText(body.instructions, "instructions");
  const tools = readTools(reading, body.tools);
  kindOfModel(reading, body, model);
  const request: LlmRequest = {
    model,
    // Templates of open models need a turn of the user.
    input: input.length === 0 ? [userMessage("")] : input,
    instructions,
    stream: reading.flag(body.stream, "stream") ?? false,
    max_output_tokens:
      reading.whole(body.max_output_tokens, "max_output_tokens", 1, LIMITS.outputTokensMax) ??
      outputTokensDefault(model),
    temperature: reading.number(body.temperature, "temperature", 0, 2),
    top_p: reading.number(body.top_p, "top_p", 0, 1),
    tools,
    tool_choice: readToolChoice(reading, body.tool_choice, tools),
    parallel_tool_calls: reading.flag(body.parallel_tool_calls, "parallel_tool_calls"),
    text: readText(reading, body.text),
    reasoning: readReasoning(reading, body.reasoning),
    metadata: readMetadata(reading, body.metadata),
    user: reading.optionalText(body.user, "user", NAME_CHARS_MAX),
    safety_identifier: reading.optionalText(body.safety_identifier, "safety_identifier", NAME_CHARS_MAX),
    prompt_cache_key: reading.optionalText(body.prompt_cache_key, "prompt_cache_key", NAME_CHARS_MAX),
  };
  reading.oneOf(body.truncation, "truncation", ["disabled"]);
  if (input.length === 0 && instructions === null) {
    if (body.input !== undefined && body.input !== null)
      reading.bad("input", "it is empty, and there are no instructions");
    else reading.bad("input", "there is neither input nor instructions");
  }
  const refused = reading.failure ? undefined : providers.get(model)?.refuses(request);
  if (refused !== undefined) reading.bad(refused, `the provider of ${model} does not support this; leave it out`);
  return reading.failure ?? request;
}

function readModel(value: unknown): LlmId | Failure {
  if (typeof value === "string" && isLlmId(value)) return value;
  const param = "model";
  if (typeof value !== "string" || value === "") {
    return new Failure(LLM.invalid_request, `model: expected one of ${LLM_IDS.join(", ")}`, { param });
  }
  const message = `model: there is no such language model; did you mean "${nearest(value.slice(0, 128), LLM_IDS)}"?`;
  return new Failure(LLM.invalid_request, message, { param });
}

/** What only one of the two kinds of models can do. */
function kindOfModel(reading: Reading, body: JsonObject, model: LlmId): void {
  const background = reading.flag(body.background, "background");
  const store = reading.flag(body.store, "store");
  if (isBackground(model)) {
    if (store === false)
      reading.bad("store", "the response of an :async model is stored, since it is polled; leave it out");
    return;
  }
  if (background === true) reading.bad("background", "a :superfast model answers inline; use an :async model");
  if (store === true) reading.bad("store", "a :superfast model does not support it; leave it out");
}

const PAIRS_MAX = 16;
const KEY_CHARS_MAX = 64;

function readMetadata(reading: Reading, value: unknown): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  const pairs = Object.entries(reading.object(value, "metadata"));
  if (pairs.length > PAIRS_MAX) reading.bad("metadata", `expected at most ${PAIRS_MAX} pairs`);
  const read: [string, string][] = [];
  for (const [key, text] of pairs.slice(0, PAIRS_MAX)) {
    if (key.length > KEY_CHARS_MAX) reading.bad("metadata", `expected keys of at most ${KEY_CHARS_MAX} characters`);
    read.push([key, reading.optionalText(text, `metadata.${key.slice(0, KEY_CHARS_MAX)}`, NAME_CHARS_MAX) ?? ""]);
  }
  return Object.fromEntries(read);
}

const KEY = new RegExp(`^[A-Za-z0-9_./:-]{1,${LIMITS.idempotencyKeyCharsMax}}$`);

/** The `Idempotency-Key`, bare or as the quoted string of the draft standard; undefined: the client sent none. */
export function readKey(header: string | null): string | undefined | Failure {
  if (header === null) return undefined;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (KEY.test(key)) return key;
  const message = `Idempotency-Key: expected 1 to ${LIMITS.idempotencyKeyCharsMax} of the characters A-Z a-z 0-9 _ . / : -`;
  return new Failure(LLM.invalid_idempotency_key, message, { param: "Idempotency-Key" });
}
