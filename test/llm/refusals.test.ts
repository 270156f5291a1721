/** What is refused before anything is held or sent: with the field at fault, on both protocols and for both kinds of models. */
import { describe, expect, test } from "bun:test";
import { ask, expectLedger, PROTOCOLS, type Told, toldBy } from "./asking.ts";
import { BY_TABLE, IN_CHAT, OF_KIND, REFUSED, TURNS } from "./refused-fields.ts";
import { JOB, LIVE, LlmStage } from "./stage.ts";

function expectRefused(told: Told, param: string | undefined): void {
  expect([told.status, told.code, told.param]).toEqual([422, "invalid_request", param]);
  expect(told.headers.get("x-should-retry")).toBe("false");
  if (param !== undefined) expect(told.message).toStartWith(`${param}: `);
}

async function expectNothing(stage: LlmStage): Promise<void> {
  expect(stage.provider.exchanges).toBeEmpty();
  await expectLedger(stage, 0n);
}

describe("422 with the field at fault, nothing held, nothing sent", () => {
  test.each(PROTOCOLS)("%s: what no model supports, and what is no request", async (protocol) => {
    await using stage = await LlmStage.start({ protocol });
    for (const [name, sent] of Object.entries(REFUSED)) {
      for (const model of [LIVE, JOB]) {
        const told = await ask(stage, "live", { model, ...sent });
        expectRefused(told, name.replace(/ \d$/, ""));
      }
    }
    await expectNothing(stage);
  });

  test("the output of a call that does not stand directly behind its turn, and a call without one", async () => {
    await using stage = await LlmStage.start({ protocol: "responses" });
    for (const [name, input] of Object.entries(TURNS))
      expectRefused(await ask(stage, "live", { input }), name.replace(/ \d$/, ""));
    await expectNothing(stage);
  });

  test("what only the other kind of models can do", async () => {
    await using stage = await LlmStage.start();
    for (const [param, sent] of OF_KIND) expectRefused(await ask(stage, "live", sent), param);
    await expectNothing(stage);
    const taken = [
      { background: false, store: false },
      { model: JOB, background: true, store: true },
    ];
    for (const sent of taken) expect((await ask(stage, "live", sent)).status).toBe(200);
  });

  test("what the chat protocol has no place for", async () => {
    await using stage = await LlmStage.start();
    for (const [param, sent] of Object.entries(IN_CHAT)) expectRefused(await ask(stage, "live", sent), param);
    await expectNothing(stage);
  });

  test.each(PROTOCOLS)("%s: what the provider's table says that it cannot honour", async (protocol) => {
    for (const [refused, param, sent] of BY_TABLE) {
      await using stage = await LlmStage.start({ protocol, table: { refuses: [refused] } });
      expectRefused(await ask(stage, "live", sent), param);
      expectRefused(await ask(stage, "job", sent), param);
      await expectNothing(stage);
      expect((await ask(stage, "live")).status).toBe(200);
    }
  });

  test.each([
    ["llm-a-5.4:superfast", "llm-a-5.3:superfast"],
    ["llm-a-5.3", "llm-a-5.3:async"],
    ["LLM-C-K3:superfast", "llm-c-k3:superfast"],
    ["gpt-5", ""],
    ["vendorA/pi05-droid", ""],
  ])("the model %s does not exist; the nearest one is named", async (model, nearest) => {
    await using stage = await LlmStage.start();
    const told = await ask(stage, "live", { model });
    expectRefused(told, "model");
    expect(told.message).toContain(`did you mean "${nearest}`);
    for (const none of [null, "", 5, ["llm-c-k3:superfast"]])
      expectRefused(await ask(stage, "live", { model: none }), "model");
    await expectNothing(stage);
  });

  test.each(["", "null", "[]", '"text"', "5", "{", '{"model":', "\u0000", '{"a":1}}'])(
    "a body of %j is no JSON object",
    async (body) => {
      await using stage = await LlmStage.start();
      expectRefused(await toldBy(await stage.post({}, {}, { body })), undefined);
      await expectNothing(stage);
    },
  );

  test("a body that is too deep, or has too many values, is refused before it is parsed", async () => {
    await using stage = await LlmStage.start();
    const deep = `{"model":"${LIVE}","input":${"[".repeat(70)}${"]".repeat(70)}}`;
    const many = JSON.stringify({ model: LIVE, input: Array.from({ length: 20_001 }, () => 0) });
    for (const body of [deep, many]) expectRefused(await toldBy(await stage.post({}, {}, { body })), undefined);
    await expectNothing(stage);
  });
});

describe("the body's length", () => {
  const LIMIT = 2 * 2 ** 20;
  const bodyOf = (bytes: number) => {
    const empty = JSON.stringify({ model: LIVE, input: "" });
    return JSON.stringify({ model: LIVE, input: "x".repeat(bytes - empty.length) });
  };

  test("2 MiB are taken, one byte more is 413 with the code of the table", async () => {
    await using stage = await LlmStage.start();
    const edge = await toldBy(await stage.post({}, {}, { body: bodyOf(LIMIT) }));
    expect(edge.status).toBe(200);
    const past = await toldBy(await stage.post({}, {}, { body: bodyOf(LIMIT + 1) }));
    expect([past.status, past.code]).toEqual([413, "invalid_request"]);
    expect(stage.provider.exchanges).toHaveLength(1);
    await expectLedger(stage, "something");
  });

  test("a chunked body is refused as soon as it passes the limit", async () => {
    await using stage = await LlmStage.start();
    const piece = new TextEncoder().encode("x".repeat(2 ** 16));
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(piece),
    });
    const past = await toldBy(await stage.post({}, {}, { body }));
    expect([past.status, past.code]).toEqual([413, "invalid_request"]);
  });
});
