/** The real engine with the tiny model does what tests of the service need of it. `python3` of PATH must have `xllamacpp`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { ENGINE, type Engine, startEngine } from "./engine.ts";
import { tinyModel } from "./tiny-model.ts";

const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string", maxLength: 40 }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const QUESTION = { model: "tiny", messages: [{ role: "user" as const, content: "What is the weather in Zürich?" }] };

test("the model is the same file each time, and a small one", () => {
  const model = tinyModel();
  expect(Buffer.compare(model, tinyModel())).toBe(0);
  expect(model.length).toBeLessThan(200_000);
});

describe.skipIf(ENGINE.absent)(ENGINE.title, () => {
  let engine: Engine;
  let client: OpenAI;

  beforeAll(async () => {
    engine = await startEngine();
    client = new OpenAI({ baseURL: engine.url, apiKey: "none", maxRetries: 0 });
  });
  afterAll(() => engine?.[Symbol.asyncDispose]());

  test("chat, plain: some text that ends by itself", async () => {
    const answer = await client.chat.completions.create(QUESTION);
    expect(answer.choices[0]?.message.content).not.toBeEmpty();
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    expect(answer.usage?.completion_tokens).toBeGreaterThan(1);
  });

  test("chat, streamed: pieces and usage; a seed repeats the text", async () => {
    const texts: string[] = [];
    for (let run = 0; run < 2; run += 1) {
      const stream = await client.chat.completions.create({
        ...QUESTION,
        seed: 4,
        max_tokens: 20,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = "";
      let tokens = 0;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        tokens = chunk.usage?.completion_tokens ?? tokens;
      }
      expect(tokens).toBeGreaterThan(1);
      texts.push(text);
    }
    expect(texts[0]).not.toBeEmpty();
    expect(texts[1]).toBe(texts[0] ?? "");
  });

  test("Responses, plain and streamed", async () => {
    const plain = await client.responses.create({ model: "tiny", input: "Hi" });
    expect([plain.status, plain.output_text.length > 0]).toEqual(["completed", true]);
    let text = "";
    let last = "";
    // Its events lack what the client's own `stream` counts on.
    for await (const event of await client.responses.create({ model: "tiny", input: "Hi", stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      last = event.type;
    }
    expect([last, text.length > 0]).toEqual(["response.completed", true]);
  });

  test("an answer by a JSON schema", async () => {
    const answer = await client.chat.completions.create({
      ...QUESTION,
      response_format: { type: "json_schema", json_schema: { name: "weather", strict: true, schema: PARAMETERS } },
    });
    const value = JSON.parse(answer.choices[0]?.message.content ?? "") as Record<string, unknown>;
    expect([Object.keys(value).sort(), typeof value.city, Number.isInteger(value.days)]).toEqual([
      PARAMETERS.required,
      "string",
      true,
    ]);
  });

  test("calls a tool that is offered, in both protocols, and speaks after its result", async () => {
    const tool = { name: "get_weather", description: "The weather of a city.", parameters: PARAMETERS };
    const tools = [{ type: "function" as const, function: tool }];
    const chat = await client.chat.completions.create({ ...QUESTION, tools });
    expect(chat.choices[0]?.finish_reason).toBe("tool_calls");
    const [call] = chat.choices[0]?.message.tool_calls ?? [];
    expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });

    const flat = [{ type: "function" as const, strict: true, ...tool }];
    const { output } = await client.responses.create({ model: "tiny", input: "Hi", tools: flat });
    const item = output.find(({ type }) => type === "function_call");
    if (item?.type !== "function_call") throw new Error(`no call in ${JSON.stringify(output)}`);
    expect(Object.keys(JSON.parse(item.arguments) as object).sort()).toEqual(PARAMETERS.required);
    const result = { type: "function_call_output" as const, call_id: item.call_id, output: "Sunny." };
    const input = [{ role: "user" as const, content: "Hi" }, item, result];
    const after = await client.responses.create({ model: "tiny", input, tools: flat });
    expect(after.output.map(({ type }) => type)).toEqual(["message"]);
  });
});
