/** The official `openai` client of npm against the service. Its stream reader throws at whatever is out of order. */
import { describe, expect, test } from "bun:test";
import OpenAI, { APIError } from "openai";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import type { ResponseInputItem, ResponseStreamEvent } from "openai/resources/responses/responses";
import { PROTOCOLS } from "./asking.ts";
import type { Script } from "./script.ts";
import { JOB, LIVE, LlmStage, type StageOptions } from "./stage.ts";

const SCHEMA = { type: "object", properties: { a: { type: "integer" } }, required: ["a"], additionalProperties: false };
const ADD = { type: "function" as const, name: "add", description: "Adds.", parameters: SCHEMA, strict: true };

async function started(options: StageOptions, otherwise: Script = { kind: "answer" }) {
  const stage = await LlmStage.start(options);
  stage.provider.otherwise = otherwise;
  const client = new OpenAI({ baseURL: `${stage.url}/v1`, apiKey: stage.key, maxRetries: 0 });
  return { stage, client, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() };
}

describe.each(PROTOCOLS)("%s: the openai client", (protocol) => {
  test("create", async () => {
    await using at = await started({ protocol });
    const response = await at.client.responses.create({ model: LIVE, input: "Say hello." });
    expect([response.status, response.output_text, response.model]).toEqual([
      "completed",
      "Hello from the provider.",
      LIVE,
    ]);
    expect(response.usage).toMatchObject({ input_tokens: 12, output_tokens: 8, total_tokens: 20 });
    const again = await at.client.responses.retrieve(response.id);
    expect(again.output_text).toBe(response.output_text);
  });

  test("create with stream", async () => {
    await using at = await started({ protocol });
    const events: ResponseStreamEvent[] = [];
    for await (const event of await at.client.responses.create({ model: LIVE, input: "Hi", stream: true }))
      events.push(event);
    const text = events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
    expect([text, events.at(-1)?.type]).toEqual(["Hello from the provider.", "response.completed"]);
  });

  const ANSWERS: readonly (readonly [string, Script])[] = [
    ["a text", { kind: "answer" }],
    ["no text", { kind: "answer", text: "" }],
    [
      "thoughts, a text and calls",
      { kind: "answer", reasoning: "Hm.", text: "Well:", calls: [{ name: "add", arguments: '{"a":1}' }] },
    ],
    ["a refusal", { kind: "answer", refusal: "No." }],
    ["an answer that is cut at the limit", { kind: "answer", finish: "length" }],
  ];
  test.each(ANSWERS)(
    "the stream helper takes every event of %s, and builds the stored response of them",
    async (_, script) => {
      await using at = await started({ protocol }, script);
      const stream = at.client.responses.stream({ model: LIVE, input: "Hi", tools: [ADD] });
      let snapshot = "";
      stream.on("response.output_text.delta", (event) => {
        snapshot = event.snapshot;
      });
      const response = await stream.finalResponse();
      const stored = await at.client.responses.retrieve(response.id);
      expect(response.output_text).toBe(stored.output_text);
      expect(snapshot).toBe(stored.output_text);
      expect(response.output.map(({ type, id }) => [type, id])).toEqual(
        stored.output.map(({ type, id }) => [type, id]),
      );
      expect(response.output.map((item) => ("status" in item ? item.status : ""))).toEqual(
        stored.output.map((item) => ("status" in item ? item.status : "")),
      );
    },
  );

  test("a background job, polled; and its stream", async () => {
    await using at = await started({ protocol });
    let response = await at.client.responses.create({ model: JOB, input: "Hi", background: true });
    expect(response.status).toBeOneOf(["queued", "in_progress"]);
    while (response.status === "queued" || response.status === "in_progress") {
      await Bun.sleep(5);
      response = await at.client.responses.retrieve(response.id);
    }
    expect([response.status, response.output_text]).toEqual(["completed", "Hello from the provider."]);
    const final = await at.client.responses.stream({ model: JOB, input: "Hi", background: true }).finalResponse();
    expect(final.output_text).toBe("Hello from the provider.");
  });

  test("a call of a tool, its result, and the answer: what came out goes in again as it is", async () => {
    await using at = await started({ protocol });
    at.stage.provider.play({
      kind: "answer",
      text: "I add.",
      calls: [{ id: "call_7", name: "add", arguments: '{"a":1}' }],
    });
    const input: ResponseInputItem[] = [{ role: "user", content: "Add." }];
    const first = await at.client.responses.create({ model: LIVE, input, tools: [ADD] });
    const call = first.output.find((item) => item.type === "function_call");
    expect(call).toMatchObject({ call_id: "call_7", name: "add", arguments: '{"a":1}' });
    const output = { type: "function_call_output" as const, call_id: "call_7", output: "2" };
    const next = [...toResponseInputItems([...input, ...first.output]), output];
    const second = await at.client.responses.create({ model: LIVE, input: next, tools: [ADD] });
    expect(second.output_text).toBe("Hello from the provider.");
    const got = JSON.stringify(at.stage.provider.exchanges[1]?.body);
    for (const part of ["I add.", "call_7", '{\\"a\\":1}', '"2"']) expect(got).toContain(part);
  });

  test("structured output", async () => {
    await using at = await started({ protocol }, { kind: "answer", text: '{"a":1}' });
    const text = { format: { type: "json_schema" as const, name: "n", schema: SCHEMA, strict: true } };
    const response = await at.client.responses.create({ model: LIVE, input: "Hi", text });
    expect(JSON.parse(response.output_text)).toEqual({ a: 1 });
    const streamed = await at.client.responses.stream({ model: LIVE, input: "Hi", text }).finalResponse();
    expect(JSON.parse(streamed.output_text)).toEqual({ a: 1 });
  });

  test("a stream that fails inside ends with a failed response, told as such and as nothing else", async () => {
    await using at = await started({ protocol }, { kind: "cut", after: 2, gapMs: 20 });
    const types: string[] = [];
    for await (const event of await at.client.responses.create({ model: LIVE, input: "Hi", stream: true }))
      types.push(event.type);
    expect(types.at(-1)).toBe("response.failed");
    expect(types).not.toContain("response.completed");
  });
});

describe("what the client does by itself", () => {
  test("errors have its classes, with code and param", async () => {
    await using at = await started({ without: ["llm-c-k3:superfast"] });
    const errors: unknown[] = [];
    const failing = [{ model: "gpt-5" }, { model: LIVE, top_logprobs: 3 }, { model: "llm-c-k3:superfast" }];
    for (const body of failing)
      await at.client.responses.create({ input: "Hi", ...body }).catch((error) => errors.push(error));
    const told = errors.map((error) => error instanceof APIError && [error.status, error.code, error.param]);
    expect(told).toEqual([
      [422, "invalid_request", "model"],
      [422, "invalid_request", "top_logprobs"],
      [503, "unconfigured", undefined],
    ]);
  });

  test("retries what can be cured, and not what must not be retried", async () => {
    await using at = await started({});
    const client = at.client.withOptions({ maxRetries: 2 });
    at.stage.provider.play({ kind: "refuse", status: 429 });
    expect((await client.responses.create({ model: LIVE, input: "Hi" })).status).toBe("completed");
    expect(at.stage.provider.exchanges).toHaveLength(2);
    at.stage.provider.play({ kind: "refuse", status: 409 });
    const error = await client.responses.create({ model: LIVE, input: "Hi" }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 409, code: "upstream_rejected" });
    expect(at.stage.provider.exchanges).toHaveLength(3);
  });

  test("a request and its repeat with the same key are one response", async () => {
    await using at = await started({});
    const options = { headers: { "Idempotency-Key": "mine" } };
    const one = await at.client.responses.create({ model: LIVE, input: "Hi" }, options);
    const two = await at.client.responses.create({ model: LIVE, input: "Hi" }, options);
    expect([two.id, at.stage.provider.exchanges.length]).toEqual([one.id, 1]);
  });

  test("models.list", async () => {
    await using at = await started({});
    const ids: string[] = [];
    for await (const { id } of at.client.models.list()) ids.push(id);
    expect(ids).toHaveLength(5);
  });
});
