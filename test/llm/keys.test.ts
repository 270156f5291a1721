/** `Idempotency-Key`: one response for each key, however often it is asked for; its format and its four codes. */
import { describe, expect, test } from "bun:test";
import { ask, expectLedger, MANNERS, toldBy } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import { JOB, LIVE, LlmStage } from "./stage.ts";

const key = (text: string) => ({ "idempotency-key": text });

describe("the format", () => {
  const GOOD: readonly (readonly [string, string])[] = [
    ["one character", "a"],
    ["200 characters", "k".repeat(200)],
    ["every kind of character", "AZaz09_./:-"],
    ["the quoted form of the draft standard", '"quoted"'],
  ];
  test.each(GOOD)("%s: a key", async (_, text) => {
    await using stage = await LlmStage.start();
    const told = await ask(stage, "live", {}, key(text));
    expect([told.status, told.headers.get("idempotency-key")]).toEqual([200, text.replaceAll('"', "")]);
    const again = await ask(stage, "live", {}, key(text));
    expect([again.response?.id, stage.provider.exchanges.length]).toEqual([told.response?.id, 1]);
  });

  const BAD = ["", "a b", "a,b", "ä", '"', '""', 'a"', "a\tb", "k*"].map(
    (text) => [JSON.stringify(text), text] as const,
  );
  test.each([["201 characters", "k".repeat(201)] as const, ...BAD])("%s: no key", async (_, text) => {
    await using stage = await LlmStage.start();
    for (const model of [LIVE, JOB]) {
      const told = await ask(stage, "live", { model }, key(text));
      expect([told.status, told.code, told.param]).toEqual([422, "invalid_idempotency_key", "Idempotency-Key"]);
      expect(told.headers.get("x-should-retry")).toBe("false");
    }
    expect(stage.provider.exchanges).toBeEmpty();
    await expectLedger(stage, 0n);
  });

  test("a wrong body is told before a wrong key", async () => {
    await using stage = await LlmStage.start();
    expect((await ask(stage, "live", { n: 1 }, key("a b"))).code).toBe("invalid_request");
  });
});

describe("a request without a key", () => {
  test.each(MANNERS)("%s: gets one, which returns the same response", async (manner) => {
    await using stage = await LlmStage.start();
    const told = await ask(stage, manner);
    const made = told.headers.get("idempotency-key") ?? "";
    expect(made).toMatch(/^[A-Za-z0-9_./:-]{1,200}$/);
    const again = await ask(stage, manner, {}, key(made));
    expect([again.response, again.headers.get("idempotent-replayed")]).toEqual([told.response, "true"]);
    expect(told.headers.get("idempotent-replayed")).toBeNull();
    expect(stage.provider.exchanges).toHaveLength(1);
  });

  test("gets one with errors as well, and never the same twice", async () => {
    await using stage = await LlmStage.start({ without: ["llm-c-k3:superfast"] });
    stage.provider.play({ kind: "refuse", status: 500 }, { kind: "refuse", status: 400 }, { kind: "cut", after: 0 });
    const failed = [await ask(stage, "live"), await ask(stage, "live"), await ask(stage, "live")];
    failed.push(await ask(stage, "live", { model: "llm-c-k3:superfast" }), await ask(stage, "live", { n: 1 }));
    expect(failed.map(({ status }) => status)).toEqual([503, 400, 502, 503, 422]);
    const made = failed.map(({ headers }) => headers.get("idempotency-key") ?? "");
    for (const one of made) expect(one).toMatch(/^key_[A-Za-z0-9]+$/);
    expect(new Set(made).size).toBe(5);
  });
});

describe("the same body", () => {
  const first = `{"model":"${LIVE}","input":"Hi","metadata":{"a":"1","b":"2"},"temperature":0.5}`;
  const SAME = [
    `{"temperature":0.5,"metadata":{"b":"2","a":"1"},"input":"Hi","model":"${LIVE}"}`,
    ` {"model": "${LIVE}", "input": "\\u0048i", "metadata": {"a":"1","b":"2","c":null}, "temperature": 5e-1, "user": null}`,
  ];
  const OTHERS = [
    `{"model":"${LIVE}","input":"Hi ","metadata":{"a":"1","b":"2"},"temperature":0.5}`,
    `{"model":"${LIVE}","input":"Hi","metadata":{"a":"1","b":"2"},"temperature":0.5,"stream":true}`,
    `{"model":"${LIVE}","input":"Hi","metadata":{"a":"1","b":"2"},"temperature":0.5,"stream":false}`,
    `{"model":"llm-c-k3:superfast","input":"Hi","metadata":{"a":"1","b":"2"},"temperature":0.5}`,
    `{"model":"${JOB}","input":"Hi","metadata":{"a":"1","b":"2"},"temperature":0.5}`,
    `{"model":"${LIVE}","input":[{"role":"user","content":"Hi"}],"metadata":{"a":"1","b":"2"},"temperature":0.5}`,
  ];

  test("is one that says the same, whatever the order of its fields, and with nulls", async () => {
    await using stage = await LlmStage.start();
    const told = await toldBy(await stage.post({}, key("k"), { body: first }));
    for (const body of SAME) {
      const again = await toldBy(await stage.post({}, key("k"), { body }));
      expect([again.status, again.response]).toEqual([200, told.response]);
    }
    expect(stage.provider.exchanges).toHaveLength(1);
  });

  test.each(OTHERS)("%s is another one: 409, whatever became of the first", async (body) => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer" }, { kind: "refuse", status: 400 });
    const refused = async (name: string) => {
      const told = await toldBy(await stage.post({}, key(name), { body }));
      expect([told.status, told.code, told.param]).toEqual([409, "idempotency_conflict", "Idempotency-Key"]);
      expect(told.headers.get("x-should-retry")).toBe("false");
    };
    await stage.post({}, key("answered"), { body: first });
    await refused("answered");
    await stage.post({}, key("spent"), { body: first });
    await refused("spent");
    expect(stage.provider.exchanges).toHaveLength(2);
    await expectLedger(stage, "something");
  });

  test("another one is told while the first still runs", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "hang_inside", after: 1 });
    const left = new AbortController();
    await stage.post({ stream: true }, key("k"), { signal: left.signal });
    expect((await ask(stage, "live", { input: "Other" }, key("k"))).code).toBe("idempotency_conflict");
    left.abort();
  });

  test("of another account is another request: keys are each account's own", async () => {
    await using one = await LlmStage.start({ accountId: "acct_1" });
    await using two = await LlmStage.start({ accountId: "acct_2", store: one.store });
    const mine = await ask(one, "live", {}, key("k"));
    const theirs = await ask(two, "live", {}, key("k"));
    expect(theirs.response?.id).not.toBe(mine.response?.id ?? "");
    expect([one.provider.exchanges.length, two.provider.exchanges.length]).toEqual([1, 1]);
  });
});

describe("a key sent 100 times at once", () => {
  test.each(MANNERS)("%s: one call, one charge, 100 equal answers", async (manner) => {
    await using stage = await LlmStage.start();
    stage.provider.otherwise = { kind: "answer", gapMs: 5 };
    const all = await Promise.all(Array.from({ length: 100 }, () => ask(stage, manner, {}, key("k"))));
    expect(stage.provider.exchanges).toHaveLength(1);
    const [first] = all;
    for (const told of all) expect([told.status, told.response]).toEqual([200, first?.response]);
    if (first?.events.length) for (const { events } of all) expectStack(events);
    const replays = all.filter(({ headers }) => headers.get("idempotent-replayed") === "true");
    expect(replays).toHaveLength(99);
    await expectLedger(stage, 12n * 600n + 8n * 2200n);
  });

  test("all of them get the failure of the first", async () => {
    await using stage = await LlmStage.start({ table: { idle_seconds: 0.2 } });
    stage.provider.play({ kind: "hang_inside", after: 1 });
    const all = await Promise.all(Array.from({ length: 100 }, () => ask(stage, "live", {}, key("k"))));
    expect(new Set(all.map(({ code }) => code))).toEqual(new Set(["upstream_unavailable"]));
    expect(stage.provider.exchanges).toHaveLength(1);
    await expectLedger(stage, 0n);
  });
});

describe("a replay as a stream", () => {
  test.each(["stream", "buffered"] as const)("%s: has the same items and ids, in whole pieces", async (manner) => {
    await using stage = await LlmStage.start();
    const calls = [
      { name: "add", arguments: '{"a":1}' },
      { name: "add", arguments: "{}" },
    ];
    stage.provider.play({ kind: "answer", reasoning: "Hmm.", text: "Hello.", calls });
    const told = await ask(stage, manner, {}, key("k"));
    const again = await ask(stage, manner, {}, key("k"));
    expect([expectStack(again.events), again.done]).toEqual(["Hello.", true]);
    expect([again.response, again.headers.get("idempotent-replayed")]).toEqual([told.response, "true"]);
    expect(again.events.filter(({ type }) => type === "response.output_text.delta")).toHaveLength(1);
    expect(again.headers.get("location")).toBe(told.headers.get("location"));
    expect(stage.provider.exchanges).toHaveLength(1);
    await expectLedger(stage, "something");
  });
});
