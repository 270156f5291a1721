/** Our events, items and object against the types of the official `openai` package: what does not fit does not compile. */
import { expect, test } from "bun:test";
import type {
  Response,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import type { ResponsesEvent } from "../../src/llm/output/events.ts";
import type { OutputItem } from "../../src/llm/output/object.ts";
import { newObject } from "../../src/llm/output/object.ts";
import type { LlmRequest } from "../../src/llm/request.ts";

/** Their types are of what a program may change. */
type Writable<T> = T extends readonly (infer Item)[]
  ? Writable<Item>[]
  : T extends object
    ? { -readonly [Key in keyof T]: Writable<T[Key]> }
    : T;

/** A member for each name, where one of ours has several. */
type Each<Event> = Event extends { readonly type: infer Type }
  ? Type extends string
    ? Omit<Event, "type"> & { readonly type: Type }
    : never
  : never;

type Ours<Type> = Extract<Each<ResponsesEvent>, { readonly type: Type }>;
/** The number is given when an event is printed; the object is tested below. */
type Theirs<Type> = Omit<Extract<ResponseStreamEvent, { type: Type }>, "sequence_number" | "response">;

/** Our names of events whose fields are not theirs; none is right. */
type Wrong<Type = Each<ResponsesEvent>["type"]> = Type extends ResponseStreamEvent["type"]
  ? [Ours<Type>] extends [never]
    ? Type
    : Writable<Ours<Type>> extends Theirs<Type>
      ? never
      : Type
  : Type;

/** Compiles if the type is `never`. */
function none<_ extends never>(): boolean {
  return true;
}

test("each event is one of theirs, with every field that they require, of their types", () => {
  expect(none<Wrong>()).toBe(true);
});

test("the comparison can fail", () => {
  const unknown: Wrong<"response.invented"> = "response.invented";
  type Bare = Omit<Ours<"response.output_text.delta">, "logprobs">;
  const bare: Bare extends Theirs<"response.output_text.delta"> ? never : "it lacks a field" = "it lacks a field";
  expect([unknown, bare]).toHaveLength(2);
});

test("each item of an output is one of theirs, and can be sent again as input", () => {
  const out = (item: Writable<OutputItem>) => item satisfies ResponseOutputItem;
  const back = (item: Writable<OutputItem>) => item satisfies ResponseInputItem;
  const item = { type: "message", id: "msg_1", role: "assistant", status: "completed", content: [] } as const;
  expect(back(out({ ...item, content: [] }))).toEqual({ ...item, content: [] });
});

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
    ...{ metadata: {}, user: null, safety_identifier: null, prompt_cache_key: null },
  };
  const object = newObject("resp_1", 0, "queued", request);
  expect(Object.keys(KEYS).filter((key) => !(key in object))).toEqual([]);
});
