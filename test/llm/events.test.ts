/** Live streams: their events, whatever the model says and in whichever protocol its provider says it. */
import { describe, expect, test } from "bun:test";
import type { ResponseObject } from "../../src/llm/output/object.ts";
import { ask, MANNERS, PROTOCOLS, textIn } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import type { Answer } from "./script.ts";
import { sse } from "./sse-text.ts";
import { LlmStage } from "./stage.ts";

const CALLS = [
  { id: "call_a", name: "add", arguments: '{"a":1,"b":2}' },
  { id: "call_b", name: "mul", arguments: "{}" },
  { id: "call_c", name: "add", arguments: '{"a":"Zürich 🏔"}' },
];

const ANSWERS: Readonly<Record<string, Answer>> = {
  "a text": { text: "Hello, Zürich 🏔!", deltas: 6 },
  "no text at all": { text: "" },
  "a refusal": { refusal: "I cannot help with that." },
  "a text and a refusal": { text: "Well,", refusal: "no." },
  "thoughts and a text": { reasoning: "Let me think about it.", text: "42" },
  "thoughts alone": { reasoning: "I think, and say nothing.", text: "" },
  "one call": { calls: CALLS.slice(0, 1) },
  "several calls": { calls: CALLS },
  "thoughts, a text and calls": { reasoning: "Hmm.", text: "I shall ask.", calls: CALLS },
};

const IN_RESPONSES: Readonly<Record<string, Answer>> = {
  "thoughts in short": { summary: "A short thought.", text: "42" },
  "thoughts in full and in short": { reasoning: "A long, long thought.", summary: "A thought.", text: "42" },
};

describe.each(PROTOCOLS)("%s", (protocol) => {
  const answers = protocol === "chat" ? ANSWERS : { ...ANSWERS, ...IN_RESPONSES };

  test.each(Object.entries(answers))("%s: events are complete, in order, and the response's own", async (_, answer) => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.otherwise = { kind: "answer", ...answer };
    const { status, headers, events, done, response } = await ask(stage, "stream");
    expect([status, headers.get("content-type"), done]).toEqual([200, "text/event-stream; charset=utf-8", true]);
    expect(expectStack(events)).toBe(answer.text ?? "");
    const live = await ask(stage, "live");
    expect(saidBy(live.response)).toEqual(saidBy(response));
    const stored = (await (await stage.get(`/v1/responses/${response?.id}`)).json()) as ResponseObject;
    expect(stored).toEqual(response as ResponseObject);
  });

  test.each(Object.entries(answers))("%s: what a provider says without a stream is the same", async (_, answer) => {
    await using stage = await LlmStage.start({ protocol, table: { stream: false } });
    stage.provider.otherwise = { kind: "answer", ...answer };
    const { events, response } = await ask(stage, "stream");
    expect(stage.provider.exchanges[0]?.body?.stream).toBe(false);
    expect(expectStack(events)).toBe(answer.text ?? "");
    expect(response?.output.flatMap((item) => ("call_id" in item ? [[item.call_id, item.arguments]] : []))).toEqual(
      (answer.calls ?? []).map(({ id = "", arguments: text }) => [id, text]),
    );
    expect(textIn(response?.output)).toBe((answer.text ?? "") + (answer.refusal ?? ""));
  });

  test.each([
    ["length", "max_output_tokens"],
    ["content_filter", "content_filter"],
  ] as const)("an answer that ends by %s is incomplete, and says why", async (finish, reason) => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.otherwise = { kind: "answer", text: "Once upon a", finish };
    for (const manner of MANNERS) {
      const { status, events, response, done } = await ask(stage, manner);
      expect([status, response?.status, response?.incomplete_details]).toEqual([200, "incomplete", { reason }]);
      expect([response?.completed_at, response?.error, response?.output_text]).toEqual([null, null, "Once upon a"]);
      expect(response?.output.map((item) => item.status)).toEqual(["incomplete"]);
      if (events.length > 0) expect([expectStack(events, "response.incomplete"), done]).toEqual(["Once upon a", true]);
    }
  });

  test("each event is whole in one piece of the body, and its lines are `event:` and `data:`", async () => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.play({ kind: "answer", text: "a\nb\r\nc\u2028d", deltas: 9, gapMs: 2 });
    const answer = await stage.post({ stream: true });
    const decoder = new TextDecoder();
    for await (const piece of answer.body ?? []) {
      const text = decoder.decode(piece as Uint8Array);
      expect(text).toMatch(/^(event: [a-z_.]+\ndata: \{[^\n\r]*\}\n\n)*(data: \[DONE\]\n\n)?$/);
    }
  });
});

const chunk = (delta: object, finish_reason: string | null = null) => ({ choices: [{ delta, finish_reason }] });

test("chat: a text, calls and a text after them are items of their own", async () => {
  await using stage = await LlmStage.start();
  const call = { index: 0, id: "call_1", type: "function", function: { name: "add", arguments: "{}" } };
  const chunks = [
    chunk({ content: "One" }),
    chunk({ tool_calls: [call] }),
    chunk({ content: "two" }),
    chunk({}, "stop"),
  ];
  stage.provider.play({ kind: "raw", chunks: [sse(chunks, { done: true })] });
  const { events, response } = await ask(stage, "stream");
  expect(expectStack(events)).toBe("Onetwo");
  expect(response?.output.map(({ type }) => type)).toEqual(["message", "function_call", "message"]);
});

test("chat: a server that says reasoning, without an index or an id of its calls, is understood", async () => {
  await using stage = await LlmStage.start();
  const call = { function: { name: "add", arguments: "{}" } };
  const chunks = [chunk({ reasoning: "Hm." }), chunk({ tool_calls: [call] }), chunk({}, "tool_calls")];
  stage.provider.play({ kind: "raw", chunks: [sse(chunks, { done: true })] });
  const { events, response } = await ask(stage, "stream");
  expectStack(events);
  const [thought, made] = response?.output ?? [];
  expect(thought).toMatchObject({ type: "reasoning", content: [{ type: "reasoning_text", text: "Hm." }] });
  expect(made).toMatchObject({ type: "function_call", name: "add", call_id: expect.stringMatching(/^call_/) });
});

/** Without what differs between two runs. */
function saidBy(response: ResponseObject | undefined): unknown {
  return response && { ...response, ...SAME, output: response.output.map((item) => ({ ...item, id: "" })) };
}

const SAME = { id: "", created_at: 0, completed_at: 0 };
