/** Our object and our words against the types of the official `openai` package: what these lists lack does not compile. */
import { expect, test } from "bun:test";
import type {
  EasyInputMessage,
  Response,
  ResponseFormatTextConfig,
  ResponseInputImage,
  ResponseTextConfig,
  ToolChoiceOptions,
} from "openai/resources/responses/responses";
import type { Reasoning } from "openai/resources/shared";
import { readRequest } from "../../src/llm/checks.ts";
import { newObject } from "../../src/llm/output/object.ts";
import type { LlmRequest } from "../../src/llm/request.ts";
import { Failure } from "../../src/std/failure.ts";

type Required<T> = { [Key in keyof T]-?: undefined extends T[Key] ? never : Key }[keyof T];

/** All keys that they require, and no other: the compiler sees to it. */
const KEYS: Readonly<Record<Required<Response>, true>> = {
  id: true,
  object: true,
  created_at: true,
  model: true,
  output: true,
  output_text: true,
  error: true,
  incomplete_details: true,
  instructions: true,
  metadata: true,
  parallel_tool_calls: true,
  temperature: true,
  tool_choice: true,
  tools: true,
  top_p: true,
  access_programs: true,
};

test("the object has every key that they require", () => {
  const request: LlmRequest = {
    ...{ model: "llm-a-5.3:async", input: [], instructions: null, stream: false, max_output_tokens: 1 },
    ...{ temperature: null, top_p: null, tools: [], tool_choice: "auto", parallel_tool_calls: null },
    ...{ text: { format: { type: "text" }, verbosity: null }, reasoning: { effort: null, summary: null } },
    ...{ metadata: {}, store: null, user: null, safety_identifier: null, prompt_cache_key: null },
  };
  const object = newObject("resp_1", 0, "queued", request);
  expect(Object.keys(KEYS).filter((key) => !(key in object))).toEqual([]);
});

/** All words of a field, and no other. */
type Words<Word> = Readonly<Record<NonNullable<Word> & string, true>>;

const EFFORT: Words<Reasoning["effort"]> = {
  none: true,
  minimal: true,
  low: true,
  medium: true,
  high: true,
  xhigh: true,
  max: true,
};
const SUMMARY: Words<Reasoning["summary"]> = { auto: true, concise: true, detailed: true };
const VERBOSITY: Words<ResponseTextConfig["verbosity"]> = { low: true, medium: true, high: true };
const DETAIL: Words<ResponseInputImage["detail"]> = { low: true, high: true, auto: true, original: true };
const CHOICE: Words<ToolChoiceOptions> = { none: true, auto: true, required: true };
const ROLE: Words<EasyInputMessage["role"]> = { user: true, assistant: true, system: true, developer: true };
const PHASE: Words<EasyInputMessage["phase"]> = { commentary: true, final_answer: true };
const FORMAT: Words<ResponseFormatTextConfig["type"]> = { text: true, json_schema: true, json_object: true };

const image = { type: "input_image", image_url: "data:image/png;base64,AAAA" };
const tools = [{ type: "function", name: "add" }];
const SENT: Readonly<Record<string, readonly [Words<string>, (word: string) => object]>> = {
  "reasoning.effort": [EFFORT, (effort) => ({ reasoning: { effort } })],
  "reasoning.summary": [SUMMARY, (summary) => ({ reasoning: { summary } })],
  "text.verbosity": [VERBOSITY, (verbosity) => ({ text: { verbosity } })],
  "input[0].content[0].detail": [DETAIL, (detail) => ({ input: [{ role: "user", content: [{ ...image, detail }] }] })],
  tool_choice: [CHOICE, (tool_choice) => ({ tools, tool_choice })],
  "input[0].role": [ROLE, (role) => ({ input: [{ role, content: "Hi" }] })],
  "input[0].phase": [PHASE, (phase) => ({ input: [{ role: "assistant", content: "Hi", phase }] })],
  "text.format.type": [
    FORMAT,
    (type) => ({ text: { format: { ...(type === "json_schema" && { name: "n", schema: {} }), type } } }),
  ],
};

test.each(Object.entries(SENT))("%s takes each word that their types have, and no other", (param, [words, sent]) => {
  for (const word of [...Object.keys(words), "loud"]) {
    const read = readRequest({ model: "llm-a-5.3:superfast", input: "Hi", ...sent(word) }, new Map());
    expect([word, read instanceof Failure ? read.param : undefined]).toEqual([
      word,
      word === "loud" ? param : undefined,
    ]);
  }
});
