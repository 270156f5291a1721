/** Providers that speak a protocol in their own way: what is an answer all the same, and what is none. */
import { describe, expect, test } from "bun:test";
import { ask, expectLedger } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import { responsesAnswer } from "./responses-script.ts";
import { sse } from "./sse-text.ts";
import { LlmStage } from "./stage.ts";

const USAGE = { input_tokens: 3, output_tokens: 4 };

function message(id: string, ...texts: string[]): object {
  return {
    id,
    type: "message",
    role: "assistant",
    status: "completed",
    content: texts.map((text) => ({ type: "output_text", text, annotations: [] })),
  };
}

const added = (output_index: number, item: object) => ({ type: "response.output_item.added", output_index, item });
const done = (output_index: number, item: object) => ({ type: "response.output_item.done", output_index, item });
const delta = (output_index: number, item_id: string, content_index: number, text: string) => ({
  type: "response.output_text.delta",
  ...{ output_index, item_id, content_index, delta: text },
});
const completed = (...output: object[]) => ({
  type: "response.completed",
  response: { status: "completed", output, usage: USAGE },
});
const open = (id: string) => ({ ...message(id), status: "in_progress" });
const call = (id: string, text: string) => ({ type: "function_call", id, call_id: id, name: "add", arguments: text });

const UNDERSTOOD: Readonly<Record<string, { events: object[]; texts: string[] }>> = {
  "two parts of one message": {
    events: [
      added(0, open("m")),
      delta(0, "m", 0, "One"),
      delta(0, "m", 1, "Two"),
      delta(0, "m", 1, "!"),
      done(0, message("m", "One", "Two!")),
      completed(message("m", "One", "Two!")),
    ],
    texts: ["One", "Two!"],
  },
  "an empty part before another": {
    events: [added(0, open("m")), done(0, message("m", "", "Two")), completed(message("m", "", "Two"))],
    texts: ["", "Two"],
  },
  "no deltas, only items": {
    events: [done(0, message("m", "Hello")), completed(message("m", "Hello"))],
    texts: ["Hello"],
  },
  "no items, only the response": { events: [completed(message("m", "Hello"))], texts: ["Hello"] },
  "deltas, then a response without its output": {
    events: [
      delta(0, "m", 0, "Hel"),
      delta(0, "m", 0, "lo"),
      { type: "response.completed", response: { status: "completed" } },
    ],
    texts: ["Hello"],
  },
  "the rest of a text in its item": {
    events: [
      added(0, open("m")),
      delta(0, "m", 0, "Hel"),
      done(0, message("m", "Hello")),
      completed(message("m", "Hello")),
    ],
    texts: ["Hello"],
  },
  "ids without places": {
    events: [
      { type: "response.output_item.added", item: open("m") },
      { type: "response.output_text.delta", item_id: "m", delta: "Hello" },
      { type: "response.output_item.done", item: message("m", "Hello") },
      completed(message("m", "Hello")),
    ],
    texts: ["Hello"],
  },
  "items that end after the next one has begun": {
    events: [
      added(0, open("m")),
      delta(0, "m", 0, "One"),
      added(1, open("n")),
      delta(1, "n", 0, "Two"),
      done(0, message("m", "One")),
      done(1, message("n", "Two")),
      completed(message("m", "One"), message("n", "Two")),
    ],
    texts: ["One", "Two"],
  },
  "events that nobody knows": {
    events: [
      { type: "response.brand_new" },
      delta(0, "m", 0, "Hello"),
      { type: "ping" },
      completed(message("m", "Hello")),
    ],
    texts: ["Hello"],
  },
};

const PIECES: Readonly<Record<string, object[]>> = {
  "a delta of an item that was closed by the next": [
    added(0, open("m")),
    added(1, open("n")),
    delta(1, "n", 0, "Two"),
    delta(0, "m", 0, "One"),
    completed(message("m", "One"), message("n", "Two")),
  ],
  "a text that is not that of its deltas": [delta(0, "m", 0, "Hello"), done(0, message("m", "Hullo")), completed()],
  "a response whose text is not that of its deltas": [delta(0, "m", 0, "Hello"), completed(message("m", "Hell"))],
  "text that was never told before the next item": [
    added(0, open("m")),
    added(1, open("n")),
    delta(1, "n", 0, "Two"),
    completed(message("m", "One"), message("n", "Two")),
  ],
  "a delta without text": [added(0, open("m")), { type: "response.output_text.delta", item_id: "m", output_index: 0 }],
  "an item that nobody asked for": [added(0, { type: "web_search_call", id: "w", status: "in_progress" })],
  "an item that becomes another": [added(0, open("m")), done(0, call("m", "{}")), completed(call("m", "{}"))],
  "an event that is no object": [["response.completed"]],
};

async function expectNoAnswer(protocol: "chat" | "responses", text: string): Promise<void> {
  await using stage = await LlmStage.start({ protocol });
  stage.provider.otherwise = { kind: "raw", chunks: [text] };
  const live = await ask(stage, "live");
  expect([live.status, live.code]).toEqual([502, "invalid_upstream_response"]);
  expect((await ask(stage, "stream")).code).toBe("invalid_upstream_response");
  expect(stage.provider.exchanges).toHaveLength(2);
  await expectLedger(stage, 0n);
}

const serve = (events: readonly object[]) => ({ kind: "raw", chunks: [sse(events)] }) as const;

describe("Responses", () => {
  test.each(Object.entries(UNDERSTOOD))("%s: the same answer, and events in order", async (_, { events, texts }) => {
    await using stage = await LlmStage.start({ protocol: "responses" });
    stage.provider.otherwise = serve(events);
    const told = await ask(stage, "stream");
    expect(told.code).toBeUndefined();
    expectStack(told.events);
    const items = told.response?.output ?? [];
    expect(items.flatMap((item) => (item.type === "message" ? item.content : [])) as unknown).toEqual(
      texts.map((text) => ({ type: "output_text", text, annotations: [], logprobs: [] })),
    );
    const live = await ask(stage, "live");
    expect(live.response?.output_text).toBe(texts.join(""));
  });

  test.each(Object.entries(PIECES))("%s is no answer", (_, events) => expectNoAnswer("responses", sse(events)));

  test("an answer without a stream may have several parts, and labels of its messages", async () => {
    await using stage = await LlmStage.start({ protocol: "responses", table: { stream: false } });
    const output = [
      { ...message("m", "One", "Two"), phase: "commentary" },
      { ...message("n", "Three"), phase: "final_answer" },
    ];
    stage.provider.play({
      kind: "raw",
      headers: { "content-type": "application/json" },
      chunks: [JSON.stringify({ ...responsesAnswer({}), output })],
    });
    const { events, response } = await ask(stage, "stream");
    expect(expectStack(events)).toBe("OneTwoThree");
    expect(response?.output).toMatchObject([{ phase: "commentary" }, { phase: "final_answer" }]);
  });

  test("a server that says completed at the limit of tokens is not believed", async () => {
    await using stage = await LlmStage.start({ protocol: "responses" });
    stage.provider.otherwise = { kind: "answer", usage: { input: 3, output: 16 } };
    const { response } = await ask(stage, "live", { max_output_tokens: 16 });
    expect([response?.status, response?.incomplete_details]).toEqual(["incomplete", { reason: "max_output_tokens" }]);
    const enough = await ask(stage, "live", { max_output_tokens: 17 });
    expect(enough.response?.status).toBe("completed");
  });

  test("thoughts that come encrypted are kept, and can be sent again", async () => {
    await using stage = await LlmStage.start({ protocol: "responses" });
    const thought = { type: "reasoning", id: "r", summary: [], encrypted_content: "gAAAA=" };
    stage.provider.play(serve([done(0, thought), done(1, message("m", "Hi")), completed(thought, message("m", "Hi"))]));
    const { response, events } = await ask(stage, "stream");
    expectStack(events);
    expect(response?.output[0]).toMatchObject({ type: "reasoning", encrypted_content: "gAAAA=" });
    const again = await ask(stage, "live", { input: [...(response?.output ?? []), { role: "user", content: "And?" }] });
    expect(again.status).toBe(200);
    expect(stage.provider.exchanges[1]?.body).toMatchObject({
      input: [{ type: "reasoning", encrypted_content: "gAAAA=" }, { type: "message" }, { type: "message" }],
    });
  });
});

describe("chat", () => {
  const chunk = (part: object, finish_reason: string | null = null) => ({
    choices: [{ index: 0, delta: part, finish_reason }],
  });
  const calls = (...tool_calls: object[]) => chunk({ tool_calls });
  const made = (index: number, name: string, text: string) => ({
    index,
    id: `c${index}`,
    function: { name, arguments: text },
  });
  const STRAY: Readonly<Record<string, object[]>> = {
    "text after the finish_reason": [chunk({ content: "a" }), chunk({}, "stop"), chunk({ content: "b" })],
    "no finish_reason": [chunk({ content: "a" })],
    "a piece of a call that was over": [
      calls(made(0, "add", "{")),
      calls(made(1, "add", "{}")),
      calls({ index: 0, function: { arguments: "}" } }),
      chunk({}, "tool_calls"),
    ],
    "a call without a name": [calls({ index: 0, function: { arguments: "{}" } }), chunk({}, "tool_calls")],
    "content that is no text": [chunk({ content: { text: "a" } }), chunk({}, "stop")],
    "no choices": [{ id: "x" }],
    "a chunk that is no object": [[]],
  };

  test.each(Object.entries(STRAY))("%s is no answer", (_, events) =>
    expectNoAnswer("chat", sse(events, { done: true })),
  );

  test("empty fields after the finish_reason, an empty one before it, and fields that nobody knows are nothing", async () => {
    await using stage = await LlmStage.start();
    const last = { role: "assistant", content: "", tool_calls: [], provider_specific_fields: { a: 1 } };
    const chunks = [chunk({ content: "Hi", tool_calls: null }, ""), chunk({}, "stop"), chunk(last)];
    stage.provider.play({ kind: "raw", chunks: [sse(chunks, { done: true })] });
    const { events } = await ask(stage, "stream");
    expect(expectStack(events)).toBe("Hi");
  });

  test("arguments that the limit of tokens has cut off are told as incomplete", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer", calls: [{ name: "add", arguments: '{"a":' }], finish: "length" });
    const { response } = await ask(stage, "live");
    expect([response?.status, response?.output[0]?.status]).toEqual(["incomplete", "incomplete"]);
  });
});
