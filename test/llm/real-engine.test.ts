/** A real engine behind the service: llama.cpp's server with the tiny model, through both of its protocols. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Ajv from "ajv";
import { ask, expectLedger, PROTOCOLS } from "./asking.ts";
import { ENGINE, type Engine, startEngine } from "./engine.ts";
import { expectStack } from "./event-stack.ts";
import { LlmStage } from "./stage.ts";

const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string", maxLength: 40 }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const TOOL = { type: "function", name: "get_weather", description: "The weather of a city.", parameters: PARAMETERS };
const QUESTION = { input: "What is the weather in Zürich?" };

describe.skipIf(ENGINE.absent)(ENGINE.title, () => {
  let engine: Engine;
  const isWeather = new Ajv().compile(PARAMETERS);

  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());

  const started = (protocol: (typeof PROTOCOLS)[number], table = {}) =>
    LlmStage.start({ protocol, table: { base_url: engine.url, model: "tiny", ...table } });

  test.each(PROTOCOLS)("%s: a real answer as a stream, plain and in the background, with usage", async (protocol) => {
    await using stage = await started(protocol);
    const stream = await ask(stage, "stream", { ...QUESTION, max_output_tokens: 400 });
    expect([stream.status, stream.done]).toEqual([200, true]);
    expectStack(stream.events, `response.${stream.response?.status}`);
    const deltas = stream.events.filter(({ type }) => type === "response.output_text.delta");
    expect(deltas.length).toBeGreaterThan(0);
    for (const manner of ["live", "job", "buffered"] as const) {
      const told = await ask(stage, manner, QUESTION);
      expect([told.status, told.code]).toEqual([200, undefined]);
      expect(told.response?.usage?.output_tokens).toBeGreaterThan(0);
      expect(told.response?.usage?.input_tokens).toBeGreaterThan(0);
    }
    await expectLedger(stage, "something");
  });

  test.each(PROTOCOLS)("%s: an answer that is cut at the limit is incomplete", async (protocol) => {
    await using stage = await started(protocol);
    // The likeliest token each time: a random model that draws its tokens may end by itself before the limit.
    const { response, events } = await ask(stage, "stream", { ...QUESTION, max_output_tokens: 2, temperature: 0 });
    expect(response?.incomplete_details).toEqual({ reason: "max_output_tokens" });
    expectStack(events, "response.incomplete");
    expect(response?.usage?.output_tokens).toBe(2);
  });

  test("chat: an answer by a JSON schema validates against it", async () => {
    await using stage = await started("chat");
    const text = { format: { type: "json_schema", name: "weather", schema: PARAMETERS, strict: true } };
    for (const manner of ["stream", "live"] as const) {
      const { response } = await ask(stage, manner, { ...QUESTION, text });
      const value: unknown = JSON.parse(response?.output_text ?? "");
      expect([isWeather(value), isWeather.errors]).toEqual([true, null]);
    }
  });

  test("Responses: a format that this server ignores without a word is refused where its table says so", async () => {
    await using stage = await started("responses", { refuses: ["text.format"] });
    const told = await ask(stage, "live", { ...QUESTION, text: { format: { type: "json_object" } } });
    expect([told.status, told.param]).toEqual([422, "text.format"]);
  });

  test.each(PROTOCOLS)("%s: calls a tool, and speaks after its result", async (protocol) => {
    await using stage = await started(protocol);
    const asked = { ...QUESTION, tools: [TOOL] };
    const { response, events } = await ask(stage, "stream", asked);
    expectStack(events);
    const calls = response?.output.filter((item) => item.type === "function_call") ?? [];
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) expect([call.name, isWeather(JSON.parse(call.arguments))]).toEqual(["get_weather", true]);
    const results = calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: "Sunny." }));
    const input = [{ role: "user", content: QUESTION.input }, ...(response?.output ?? []), ...results];
    const after = await ask(stage, "live", { input, tools: [TOOL] });
    expect([after.status, after.message]).toEqual([200, undefined]);
    expect(after.response?.output.map(({ type }) => type)).toContain("message");
  });

  test.each(PROTOCOLS)("%s: its refusal keeps its status, without its words and its address", async (protocol) => {
    await using stage = await started(protocol);
    const told = await ask(stage, "live", { input: "word ".repeat(20_000) });
    expect([told.status, told.code]).toEqual([400, "upstream_rejected"]);
    expect(told.message).not.toContain("context");
    expect(told.text).not.toContain(new URL(engine.url).host);
    await expectLedger(stage, 0n);
  });

  test("it closes its connection after each stream without saying so, and no request fails of that", async () => {
    await using stage = await started("chat");
    for (let run = 0; run < 20; run += 1) {
      const told = await ask(stage, run % 2 ? "live" : "stream", { ...QUESTION, max_output_tokens: 3 });
      expect([told.status, told.code]).toEqual([200, undefined]);
    }
    const many = Array.from({ length: 20 }, () => ask(stage, "live", { ...QUESTION, max_output_tokens: 3 }));
    expect(new Set((await Promise.all(many)).map(({ status }) => status))).toEqual(new Set([200]));
  });
});
