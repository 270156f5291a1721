/** The checks of `POST /v1/responses`: from a body to a complete request, or the first failure. */
import { LIMITS } from "../limits.ts";
import { Failure } from "../std/failure.ts";
import { LLM } from "./errors.ts";
import { Reading } from "./fields.ts";
import type { JsonObject } from "./json.ts";
import { isBackground, type LlmId, outputTokensDefault } from "./models.ts";
import type { Provider } from "./provider/provider.ts";
import { BODY, type InputItem, imageByAddress, type LlmRequest } from "./request.ts";
import { checkTurns } from "./turns.ts";

/** A field that the model's provider cannot honour is refused as well. */
export function readRequest(
  body: JsonObject,
  providers: ReadonlyMap<LlmId, Pick<Provider, "refuses" | "config">>,
): LlmRequest | Failure {
  const reading = new Reading();
  const {
    previous_response_id: _,
    truncation: __,
    background,
    max_output_tokens,
    ...said
  } = BODY.read(reading, body, "");
  if (reading.failure) return reading.failure;
  const { model, input, tools, tool_choice, store } = said;
  const twice = tools.findIndex(({ name }, index) => tools.findIndex((tool) => tool.name === name) !== index);
  if (twice >= 0) reading.bad(`tools[${twice}].name`, "another tool has this name");
  if (tool_choice !== "auto" && tool_choice !== "none" && tools.length === 0)
    reading.bad("tool_choice", "it asks for a call, but there are no tools; send tools or leave it out");
  if (typeof tool_choice === "object" && !tools.some(({ name }) => name === tool_choice.name))
    reading.bad("tool_choice.name", "no tool has this name");
  if (said.parallel_tool_calls !== null && tools.length === 0)
    reading.bad("parallel_tool_calls", "there are no tools; send tools or leave it out");
  checkTurns(reading, input);
  if (isBackground(model) && store === false)
    reading.bad("store", "the response of an :async model is stored, since it is polled; leave it out");
  if (isBackground(model) && background === false)
    reading.bad("background", "an :async model answers in the background; use a :superfast model");
  if (!isBackground(model) && background)
    reading.bad("background", "a :superfast model answers inline; use an :async model");
  if (!isBackground(model) && store) reading.bad("store", "a :superfast model does not support it; leave it out");
  if (input.length === 0 && said.instructions === null) reading.bad("input", "there is neither input nor instructions");
  const request: LlmRequest = {
    ...said,
    // Templates of open models need a turn of the user.
    input: input.length === 0 ? [EMPTY] : input,
    max_output_tokens: max_output_tokens ?? outputTokensDefault(model),
  };
  const provider = providers.get(model);
  const refused = provider?.refuses(request);
  if (refused !== undefined) reading.bad(refused, `the provider of ${model} does not support this; leave it out`);
  const address = provider?.config.imageUrls ? undefined : imageByAddress(request);
  if (address !== undefined)
    reading.bad(address, `${model} takes images as data alone; send data:image/…;base64, and the bytes`);
  return reading.failure ?? request;
}

const EMPTY: InputItem = { type: "message", role: "user", content: [{ type: "input_text", text: "" }] };

export const KEY_PATTERN = new RegExp(`^[A-Za-z0-9_./:-]{1,${LIMITS.idempotencyKeyCharsMax}}$`);

/** The `Idempotency-Key`, bare or as the quoted string of the draft standard; undefined: the client sent none. */
export function readKey(header: string | null): string | undefined | Failure {
  if (header === null) return undefined;
  const key = /^"(.*)"$/.exec(header)?.[1] ?? header;
  if (KEY_PATTERN.test(key)) return key;
  const message = `Idempotency-Key: expected 1 to ${LIMITS.idempotencyKeyCharsMax} of the characters A-Z a-z 0-9 _ . / : -`;
  return new Failure(LLM.invalid_idempotency_key, message, { param: "Idempotency-Key" });
}
