/** Our object against the types of the official `openai` package: what it lacks does not compile. */
import { expect, test } from "bun:test";
import type { Response } from "openai/resources/responses/responses";
import { newObject } from "../../src/llm/output/object.ts";
import type { LlmRequest } from "../../src/llm/request.ts";

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
