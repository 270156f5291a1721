/**
 * The official client reads what the scripted provider answers, so the service is tested against answers of the real form. What the
 * scripted faults do is seen in the tests of the service.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import OpenAI from "openai";
import type { Answer } from "./script.ts";
import { ScriptedProvider } from "./scripted-provider.ts";

const CALLS = [
  { id: "call_a", name: "get_weather", arguments: '{"city":"Zürich"}' },
  { id: "call_b", name: "now", arguments: "{}" },
] as const;
const TEXT = "Grüße, 世界 🤖!";
const RICH: Answer = {
  text: TEXT,
  reasoning: "Let me think.",
  calls: CALLS,
  usage: { input: 7, output: 5, cached: 3, reasoning: 2 },
};
const MESSAGES: { role: "user"; content: string }[] = [{ role: "user", content: "Hi" }];

let provider: ScriptedProvider;
let client: OpenAI;

beforeEach(async () => {
  provider = await ScriptedProvider.start();
  client = new OpenAI({ baseURL: provider.url, apiKey: "key-of-the-provider", maxRetries: 0 });
});
afterEach(() => provider[Symbol.asyncDispose]());

test("chat, plain", async () => {
  const answer = await client.chat.completions.create({ model: "m", messages: MESSAGES });
  expect(answer.choices[0]).toMatchObject({ message: { content: "Hello from the provider." }, finish_reason: "stop" });
  expect(answer.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 8, total_tokens: 20 });
  const [exchange] = provider.exchanges;
  expect(exchange).toMatchObject({
    method: "POST",
    path: "/v1/chat/completions",
    state: "answered",
    body: { model: "m" },
  });
  expect(exchange?.headers.authorization).toBe("Bearer key-of-the-provider");
});

test("chat, streamed: calls, thoughts, and usage where it is asked for", async () => {
  provider.otherwise = { kind: "answer", ...RICH };
  const asked = { model: "m", messages: MESSAGES };
  const stream = client.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
  let thoughts = "";
  stream.on("chunk", (chunk) => {
    const delta = chunk.choices[0]?.delta ?? {};
    if ("reasoning_content" in delta) thoughts += delta.reasoning_content;
  });
  const { choices, usage } = await stream.finalChatCompletion();
  expect([thoughts, choices[0]?.message.content, choices[0]?.finish_reason]).toEqual([
    "Let me think.",
    TEXT,
    "tool_calls",
  ]);
  const calls = choices[0]?.message.tool_calls?.map((call) => "function" in call && [call.id, call.function]);
  expect(calls).toMatchObject(CALLS.map(({ id, name, arguments: text }) => [id, { name, arguments: text }]));
  expect(usage?.prompt_tokens_details?.cached_tokens).toBe(3);
  expect(usage?.completion_tokens_details?.reasoning_tokens).toBe(2);
  expect((await client.chat.completions.stream(asked).finalChatCompletion()).usage).toBeUndefined();
});

test.each([false, true])("Responses, streamed: %p: all kinds of items", async (streamed) => {
  provider.play({ kind: "answer", ...RICH, summary: "Thought.", refusal: "Not that." });
  const asked = { model: "m", input: "Hi" };
  const { status, output_text, output, usage } = streamed
    ? await client.responses.stream(asked).finalResponse()
    : await client.responses.create(asked);
  expect([status, output_text]).toEqual(["completed", TEXT]);
  expect(output).toMatchObject([
    { type: "reasoning", summary: [{ text: "Thought." }], content: [{ text: "Let me think." }] },
    { type: "message", content: [{ type: "output_text" }, { refusal: "Not that." }] },
    { type: "function_call" },
    { type: "function_call", call_id: "call_b", name: "now", arguments: "{}" },
  ]);
  expect(usage).toMatchObject({ input_tokens: 7, output_tokens: 5, total_tokens: 12 });
});

test("an answer that was cut by its limit", async () => {
  provider.otherwise = { kind: "answer", finish: "length" };
  const whole = await client.responses.stream({ model: "m", input: "Hi" }).finalResponse();
  expect(whole).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
  const chat = client.chat.completions.stream({ model: "m", messages: MESSAGES });
  expect((await chat.finalChatCompletion()).choices[0]?.finish_reason).toBe("length");
});
