/** The scripted provider against the official client and `fetch`: correct scripts are read as such, faults are what they say. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { chatChunks } from "./chat-script.ts";
import { responsesEvents } from "./responses-script.ts";
import type { Answer, Delivery, Script } from "./script.ts";
import { ScriptedProvider } from "./scripted-provider.ts";
import { sse } from "./sse-text.ts";

const HELLO = "Hello from the provider.";
const CALLS = [
  { id: "call_a", name: "get_weather", arguments: '{"city":"Zürich"}' },
  { id: "call_b", name: "now", arguments: "{}" },
] as const;
const RICH: Answer = {
  text: "Grüße, 世界 🤖!",
  reasoning: "Let me think.",
  calls: CALLS,
  usage: { input: 7, output: 5, cached: 3, reasoning: 2 },
};

let provider: ScriptedProvider;
let client: OpenAI;

beforeEach(async () => {
  provider = await ScriptedProvider.start();
  client = new OpenAI({ baseURL: provider.url, apiKey: "key-of-the-provider", maxRetries: 0 });
});
afterEach(() => provider[Symbol.asyncDispose]());

const MESSAGES = { model: "m", messages: [{ role: "user", content: "Hi" }] } as const satisfies object;

function chat(stream: boolean, signal?: AbortSignal): Promise<Response> {
  return post("/chat/completions", { ...MESSAGES, stream }, signal);
}

function responses(stream: boolean, signal?: AbortSignal): Promise<Response> {
  return post("/responses", { model: "m", input: "Hi", stream }, signal);
}

function post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json", connection: "close" };
  return fetch(`${provider.url}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
}

/** All that could be read, and whether the body ended correctly. */
async function read(response: Response): Promise<{ text: string; complete: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const piece of response.body ?? []) text += decoder.decode(piece, { stream: true });
    return { text, complete: true };
  } catch {
    return { text, complete: false };
  }
}

async function chatText(): Promise<string> {
  let text = "";
  for await (const chunk of await client.chat.completions.create({
    ...MESSAGES,
    messages: [...MESSAGES.messages],
    stream: true,
  }))
    text += chunk.choices[0]?.delta.content ?? "";
  return text;
}

async function responsesText(): Promise<string> {
  return (await client.responses.stream({ model: "m", input: "Hi" }).finalResponse()).output_text;
}

describe("correct answers are read by the official client", () => {
  test("plain chat", async () => {
    const answer = await client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "Hi" }] });
    expect(answer.choices[0]?.message.content).toBe(HELLO);
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    expect(answer.usage).toMatchObject({ prompt_tokens: 12, completion_tokens: 8, total_tokens: 20 });
    const [exchange] = provider.exchanges;
    expect(exchange).toMatchObject({ method: "POST", path: "/v1/chat/completions", state: "answered" });
    expect(exchange?.headers.authorization).toBe("Bearer key-of-the-provider");
    expect(exchange?.body).toMatchObject({ model: "m" });
  });

  test("streamed chat, with calls, thoughts and usage", async () => {
    provider.play({ kind: "answer", ...RICH });
    const stream = client.chat.completions.stream({
      model: "m",
      messages: [{ role: "user", content: "Hi" }],
      stream_options: { include_usage: true },
    });
    let thoughts = "";
    stream.on("chunk", (chunk) => {
      const delta = chunk.choices[0]?.delta ?? {};
      if ("reasoning_content" in delta) thoughts += delta.reasoning_content;
    });
    const whole = await stream.finalChatCompletion();
    expect(thoughts).toBe("Let me think.");
    expect(whole.choices[0]?.message.content).toBe("Grüße, 世界 🤖!");
    expect(whole.choices[0]?.finish_reason).toBe("tool_calls");
    const calls = whole.choices[0]?.message.tool_calls?.map((call) => "function" in call && [call.id, call.function]);
    expect(calls).toMatchObject(CALLS.map(({ id, name, arguments: text }) => [id, { name, arguments: text }]));
    expect(whole.usage?.prompt_tokens_details?.cached_tokens).toBe(3);
    expect(whole.usage?.completion_tokens_details?.reasoning_tokens).toBe(2);
  });

  for (const stream of [false, true])
    test(`Responses, ${stream ? "streamed" : "plain"}: all kinds of items`, async () => {
      provider.play({ kind: "answer", ...RICH, summary: "Thought.", refusal: "Not that." });
      const params = { model: "m", input: "Hi" };
      const whole = stream
        ? await client.responses.stream(params).finalResponse()
        : await client.responses.create(params);
      expect(whole.status).toBe("completed");
      expect(whole.output_text).toBe("Grüße, 世界 🤖!");
      expect(whole.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call", "function_call"]);
      expect(whole.output[0]).toMatchObject({ summary: [{ text: "Thought." }], content: [{ text: "Let me think." }] });
      expect(whole.output[1]).toMatchObject({ content: [{ type: "output_text" }, { refusal: "Not that." }] });
      expect(whole.output[3]).toMatchObject({ call_id: "call_b", name: "now", arguments: "{}" });
      expect(whole.usage).toMatchObject({ input_tokens: 7, output_tokens: 5, total_tokens: 12 });
    });

  test("an answer that was cut by its limit", async () => {
    const script: Script = { kind: "answer", finish: "length" };
    provider.play(script, script, script);
    const whole = await client.responses.stream({ model: "m", input: "Hi" }).finalResponse();
    expect(whole).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
    expect((await read(await responses(true))).text).toContain("event: response.incomplete\n");
    expect((await read(await chat(true))).text).toContain('"finish_reason":"length"');
  });

  test("usage: in a stream of chat only if asked for; none; wrong", async () => {
    expect((await read(await chat(true))).text).not.toContain("usage");
    provider.play({ kind: "answer", usage: "none" }, { kind: "answer", usage: { wire: { prompt_tokens: -1 } } });
    expect((await read(await chat(false))).text).not.toContain("usage");
    expect((await read(await chat(false))).text).toContain('"usage":{"prompt_tokens":-1}');
  });

  const deliveries: readonly Delivery[] = [
    {},
    { split: "bytes" },
    { crlf: true },
    { multiline: true },
    { split: "bytes", crlf: true, multiline: true },
    { gapMs: 2 },
    { framing: "until_close" },
    { connection: "close" },
    { connection: "silent_close" },
  ];
  for (const delivery of deliveries)
    test(`delivered as ${JSON.stringify(delivery)}`, async () => {
      const script: Script = { kind: "answer", text: "Grüße, 世界 🤖!", ...delivery };
      provider.play(script, script);
      expect(await chatText()).toBe("Grüße, 世界 🤖!");
      expect(await responsesText()).toBe("Grüße, 世界 🤖!");
    });
});

test("the form of a stream: an event for each line of its kind, [DONE] in chat alone", async () => {
  const responsesStream = (await read(await responses(true))).text;
  expect(responsesStream).toBe(sse(responsesEvents({}, { id: "resp_1", model: "m" })));
  const types = [...responsesStream.matchAll(/^event: (.+)$/gm)].map(([, type]) => type ?? "");
  const deltas = Array<string>(5).fill("response.output_text.delta");
  expect(types).toEqual(
    [
      ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"],
      deltas,
      ["response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"],
    ].flat(),
  );
  const chatStream = (await read(await chat(true))).text;
  expect(chatStream).toBe(sse(chatChunks({}, { id: "chatcmpl_2", model: "m" }), { done: true }));
  expect(chatStream).toEndWith('"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
});

describe("faults", () => {
  test("refuses: status, headers, body", async () => {
    const refusal = { kind: "refuse", status: 429, headers: { "Retry-After": "7" } } as const;
    provider.play(refusal, { ...refusal, status: 500, body: "<html>Bad</html>" });
    const first = await chat(true);
    expect([first.status, first.headers.get("retry-after")]).toEqual([429, "7"]);
    expect(await first.json()).toMatchObject({ error: { message: "Scripted refusal with 429." } });
    const second = await responses(false);
    expect([second.status, await second.text()]).toEqual([500, "<html>Bad</html>"]);
    expect((await fetch(`${provider.url}/other`)).status).toBe(404);
  });

  test("hangs before the first byte until the caller leaves", async () => {
    provider.play({ kind: "hang" });
    await expect(chat(true, AbortSignal.timeout(50))).rejects.toThrow();
    await provider.exchanges[0]?.closed;
    expect(provider.exchanges[0]?.state).toBe("left");
  });

  for (const after of [0, 2])
    test(`hangs after ${after} deltas; the caller's leaving is seen`, async () => {
      provider.play({ kind: "hang_inside", after });
      const { text, complete } = await read(await responses(true, AbortSignal.timeout(100)));
      expect([complete, text.match(/event: response.output_text.delta/g)?.length ?? 0]).toEqual([false, after]);
      expect(text).toContain("event: response.content_part.added");
      await provider.exchanges[0]?.closed;
    });

  for (const manner of ["fin", "reset"] as const)
    test(`cuts a stream by ${manner}, in the middle of an event`, async () => {
      // Without a gap, `fetch` may drop bytes that came just before the end.
      provider.play({ kind: "cut", after: 2, manner, gapMs: 10 });
      const { text, complete } = await read(await chat(true));
      expect(complete).toBe(false);
      expect(text).toContain('"content":" from"');
      expect(text).toEndWith('"model":"m","system_fingerpri');
      expect(text).not.toContain("[DONE]");
      expect(provider.exchanges[0]?.state).toBe("answered");
    });

  test("cuts a stream politely: the body ends well, the answer does not", async () => {
    provider.play({ kind: "cut", after: 2, manner: "polite" });
    const { text, complete } = await read(await chat(true));
    expect([complete, text.match(/^data: /gm)?.length, text.includes('finish_reason":"stop')]).toEqual([
      true,
      3,
      false,
    ]);
  });

  test("cuts a plain answer inside its body", async () => {
    provider.play({ kind: "cut", after: 0, gapMs: 10 });
    const { text, complete } = await read(await responses(false));
    expect(complete).toBe(false);
    expect(text).toStartWith('{"id":');
  });

  test("fails inside the stream, in the protocol's words", async () => {
    const script: Script = { kind: "fail_inside", after: 1, message: "Out of memory." };
    provider.play(script, script, script);
    const { text, complete } = await read(await responses(true));
    expect(complete).toBe(true);
    expect(text).toMatch(/event: error\n.*Out of memory[\s\S]*event: response.failed\n.*"status":"failed".*\n\n$/);
    await expect(chatText()).rejects.toThrow("Out of memory.");
    expect((await responses(false)).status).toBe(500);
  });

  test("raw bytes: a body as it is, and an answer that is no HTTP", async () => {
    provider.play(
      { kind: "raw", chunks: ["data: {broken\n", new Uint8Array([0xff, 10])], gapMs: 1 },
      { kind: "raw", status: 200, headers: { "content-length": "9" }, chunks: ["four"], last: "fin", gapMs: 10 },
      { kind: "raw", status: "none", chunks: ["220 mail.example.com ESMTP\r\n"] },
    );
    expect(await read(await chat(true))).toEqual({ text: "data: {broken\n\ufffd\n", complete: true });
    expect(await read(await chat(true))).toEqual({ text: "four", complete: false });
    await expect(chat(true)).rejects.toThrow();
  });

  test("a caller who leaves a stream is noticed within a gap, and is sent nothing more", async () => {
    provider.play({ kind: "answer", deltas: 100, text: "x".repeat(100), gapMs: 20 });
    const leave = new AbortController();
    const response = await chat(true, leave.signal);
    await response.body?.getReader().read();
    leave.abort();
    await provider.exchanges[0]?.closed;
    expect(provider.exchanges[0]?.state).toBe("left");
  });
});

test("connections: kept between requests, closed in silence when told so; scripts may look at their request", async () => {
  provider.otherwise = ({ body }) => ({ kind: "answer", text: `You are ${String(body?.model)}.` });
  const ask = async () => (await client.responses.create({ model: "m2", input: "Hi" })).output_text;
  expect([await ask(), await ask(), provider.accepted, provider.connections]).toEqual([
    "You are m2.",
    "You are m2.",
    1,
    1,
  ]);
  provider.play({ kind: "answer", connection: "silent_close" });
  expect([await ask(), await ask(), provider.accepted]).toEqual([HELLO, "You are m2.", 2]);
});
