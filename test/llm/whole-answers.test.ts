/** Answers that were whole: however their connection ends, and whatever the model wrote into them. */
import { describe, expect, test } from "bun:test";
import { ask, expectLedger, type Manner, PROTOCOLS } from "./asking.ts";
import { chatAnswer, chatChunks } from "./chat-script.ts";
import { expectStack } from "./event-stack.ts";
import { responsesAnswer, responsesEvents } from "./responses-script.ts";
import type { Answer, Raw } from "./script.ts";
import { sse } from "./sse-text.ts";
import { LlmStage } from "./stage.ts";

const HELLO = "Hello from the provider.";
const ASKED = { id: "x", model: "scripted", includeUsage: true } as const;
const MANNERS: readonly Manner[] = ["live", "stream", "job"];
/** The usage that the scripts name: 12 tokens in, 8 out. */
const COST = 12n * 600n + 8n * 2200n;

const SSE = { "content-type": "text/event-stream", "transfer-encoding": "chunked" };
const chunk = (body: string) => `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`;
const invalid = new Uint8Array([0xff, 0xfe, 0x80]);

const ENDS: Readonly<Record<string, (whole: string) => Raw>> = {
  "a reset": (whole) => ({ kind: "raw", chunks: [whole], last: "reset", gapMs: 20 }),
  "a FIN in place of the last chunk": (whole) => ({ kind: "raw", chunks: [whole], last: "fin", gapMs: 20 }),
  "a chunk without a size": (whole) => ({ kind: "raw", headers: SSE, chunks: [chunk(whole), "zz\r\n"], gapMs: 20 }),
  "a chunk that is cut": (whole) => ({
    kind: "raw",
    headers: SSE,
    chunks: [chunk(whole), "ff\r\nda"],
    last: "fin",
    gapMs: 20,
  }),
  "a word that is no event": (whole) => ({
    kind: "raw",
    chunks: [whole, "<html>Bad gateway</html>"],
    last: "fin",
    gapMs: 20,
  }),
  "an event that is no JSON": (whole) => ({ kind: "raw", chunks: [`${whole}data: {"choices\n\n`] }),
  "an error": (whole) => ({ kind: "raw", chunks: [`${whole}data: {"type":"error","error":{"code":500}}\n\n`] }),
  "bytes that are no UTF-8": (whole) => ({ kind: "raw", chunks: [Buffer.concat([Buffer.from(whole), invalid])] }),
  "more such bytes": (whole) => ({ kind: "raw", chunks: [whole, invalid, invalid], gapMs: 5 }),
  "no end at all": (whole) => ({ kind: "raw", chunks: [whole], last: "hang" }),
};

const STREAMS = {
  chat: (answer: Answer) => sse(chatChunks(answer, ASKED), { done: true }),
  responses: (answer: Answer) => sse(responsesEvents(answer)),
} as const;

describe.each(PROTOCOLS)("%s: an answer whose end was said is whole, though after it comes", (protocol) => {
  const whole = STREAMS[protocol]({});

  test.each(Object.entries(ENDS))("%s", async (_, end) => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.otherwise = end(whole);
    for (const manner of MANNERS) {
      const { response, events } = await ask(stage, manner);
      expect([manner, response?.status, response?.output_text]).toEqual([manner, "completed", HELLO]);
      if (manner === "stream") expect(expectStack(events)).toBe(HELLO);
    }
    await expectLedger(stage, 3n * COST);
  });

  test("an end of the connection inside a plain answer that is whole", async () => {
    await using stage = await LlmStage.start({ protocol, table: { stream: false, idle_seconds: 0.3 } });
    const body = JSON.stringify(protocol === "chat" ? chatAnswer({}, ASKED) : responsesAnswer({}));
    const headers = { "content-type": "application/json", "content-length": String(body.length + 9) };
    stage.provider.play(
      { kind: "raw", headers, chunks: [body], last: "fin", gapMs: 20 },
      { kind: "raw", headers, chunks: [body], last: "reset", gapMs: 20 },
      { kind: "raw", headers, chunks: [body], last: "hang" },
      { kind: "raw", headers, chunks: [body.slice(0, -1)], last: "fin" },
    );
    for (const _ of [1, 2, 3]) expect((await ask(stage, "live")).response?.output_text).toBe(HELLO);
    expect((await ask(stage, "live")).code).toBe("invalid_upstream_response");
    await expectLedger(stage, 3n * COST);
  });
});

test("the connection of an answer that ends well serves the next one", async () => {
  await using stage = await LlmStage.start();
  stage.provider.otherwise = { kind: "answer", gapMs: 1 };
  for (const _ of [1, 2, 3]) await ask(stage, "live");
  expect(stage.provider.accepted).toBe(1);
});

describe.each(PROTOCOLS)("%s: the arguments of a call are the model's words", (protocol) => {
  const WORDS = { "": "{}", '{"a":': '{"a":', "add(1, 2)": "add(1, 2)", '{"a":1}': '{"a":1}' };

  test.each(Object.entries(WORDS))("%j is %j for the client, completed and charged", async (said, told) => {
    await using stage = await LlmStage.start({ protocol });
    const calls = [
      { name: "add", arguments: said },
      { name: "add", arguments: said },
    ];
    stage.provider.otherwise = { kind: "answer", calls };
    for (const manner of MANNERS) {
      const { response, events } = await ask(stage, manner);
      const call = { type: "function_call", status: "completed", arguments: told };
      expect([response?.status, response?.output]).toMatchObject(["completed", [call, call]]);
      if (manner !== "stream") continue;
      expectStack(events);
      const done = events.filter(({ type }) => type === "response.function_call_arguments.done");
      expect(done.map(({ arguments: text }) => text)).toEqual([told, told]);
    }
    await expectLedger(stage, 3n * COST);
  });
});

describe("chat", () => {
  const piece = (delta: object, finish_reason: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason }],
  });
  const serve = (...events: object[]): Raw => ({ kind: "raw", chunks: [sse(events, { done: true })] });

  test.each(["eos", "tool_use", "end_turn"])("the finish_reason %s, which nobody knows, is stop", async (finish) => {
    await using stage = await LlmStage.start();
    stage.provider.otherwise = serve(piece({ content: "Hi" }), piece({}, finish));
    const { response } = await ask(stage, "stream");
    expect([response?.status, response?.output_text]).toEqual(["completed", "Hi"]);
  });

  test.each(["error", "abort", "insufficient_system_resource"])(
    "the finish_reason %s means that the provider is unavailable",
    async (finish) => {
      await using stage = await LlmStage.start();
      stage.provider.play(serve(piece({ content: "Hi" }), piece({}, finish)));
      const key = { "idempotency-key": "k" };
      const told = await ask(stage, "live", {}, key);
      expect([told.status, told.code]).toEqual([503, "upstream_unavailable"]);
      expect((await ask(stage, "live", {}, key)).response?.output_text).toBe(HELLO);
    },
  );

  test("an object of the stream with neither choices nor error is ignored, except for its usage", async () => {
    await using stage = await LlmStage.start();
    const usage = { prompt_tokens: 3, completion_tokens: 4 };
    const pings = [{ id: "x" }, { type: "ping", choices: null }, { object: "queue.position", position: 3 }];
    stage.provider.otherwise = serve(...pings, piece({ content: "Hi" }), {}, piece({}, "stop"), { usage });
    const { response } = await ask(stage, "stream");
    expect([response?.output_text, response?.usage?.total_tokens]).toEqual(["Hi", 7]);
  });

  test("a new id at the same index begins a new call", async () => {
    await using stage = await LlmStage.start();
    const call = (id: string | undefined, name: string | undefined, text: string) =>
      piece({ tool_calls: [{ index: 0, id, function: { name, arguments: text } }] });
    stage.provider.otherwise = serve(
      call("a", "add", '{"n":'),
      call("a", undefined, "1"),
      call(undefined, undefined, "}"),
      call("b", "add", '{"n":2}'),
      call("c", "noop", ""),
      piece({}, "tool_calls"),
    );
    const { response, events } = await ask(stage, "stream");
    expectStack(events);
    expect(response?.output.map((item) => item.type === "function_call" && [item.call_id, item.arguments])).toEqual([
      ["a", '{"n":1}'],
      ["b", '{"n":2}'],
      ["c", "{}"],
    ]);
  });
});
