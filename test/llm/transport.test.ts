/** How a provider's bytes may travel, and what becomes of the connections to it. */
import { describe, expect, test } from "bun:test";
import { ask, expectLedger, PROTOCOLS } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import type { Delivery } from "./script.ts";
import { LlmStage, SECRET } from "./stage.ts";

const TEXT = 'Zürich 🏔 says: "hello",\nthen\r\nnothing.';
const WAYS: Readonly<Record<string, Delivery>> = {
  "byte by byte": { split: "bytes" },
  "with CRLF": { crlf: true },
  "over several data lines": { multiline: true },
  "over several data lines with CRLF, byte by byte": { split: "bytes", crlf: true, multiline: true },
  "on a connection that is then closed": { connection: "close" },
  "on a connection that is closed without a word": { connection: "silent_close" },
  "until the end of the connection": { framing: "until_close" },
};

describe.each(PROTOCOLS)("%s: an answer", (protocol) => {
  test.each(Object.entries(WAYS))("%s is the same answer", async (_, delivery) => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.otherwise = { kind: "answer", text: TEXT, deltas: 7, ...delivery };
    const { events, response, done } = await ask(stage, "stream");
    expect([expectStack(events), response?.output_text, done]).toEqual([TEXT, TEXT, true]);
    expect((await ask(stage, "live")).response?.output_text).toBe(TEXT);
    expect((await ask(stage, "buffered")).response?.output_text).toBe(TEXT);
    expect(stage.provider.exchanges).toHaveLength(3);
    await expectLedger(stage, "something");
  });

  test.each(["byte by byte", "until the end of the connection"])("without a stream, %s, is the same", async (way) => {
    await using stage = await LlmStage.start({ protocol, table: { stream: false } });
    stage.provider.otherwise = { kind: "answer", text: TEXT, ...WAYS[way] };
    expect((await ask(stage, "live")).response?.output_text).toBe(TEXT);
  });

  test("long comments and an unknown field between events are nothing", async () => {
    await using stage = await LlmStage.start({ protocol });
    const whole = await answerOf(protocol);
    const noisy = whole.replaceAll("\n\n", `\n\n: ${"ping ".repeat(1000)}\n\nid: 7\nretry: 1\nfoo: bar\n\n`);
    stage.provider.play({ kind: "raw", chunks: [`\uFEFF: hello\n\n${noisy}`] });
    const { response } = await ask(stage, "live");
    expect(response?.output_text).toBe("Hello from the provider.");
  });

  test("a text of a megabyte comes whole", async () => {
    await using stage = await LlmStage.start({ protocol });
    const text = '"\\\u0001é🏔'.repeat(120_000);
    stage.provider.otherwise = { kind: "answer", text, deltas: 50 };
    const { events, response } = await ask(stage, "stream");
    expect(expectStack(events) === text).toBe(true);
    expect(response?.output_text === text).toBe(true);
  });
});

/** A correct stream of the scripted provider, as text. */
async function answerOf(protocol: string): Promise<string> {
  await using stage = await LlmStage.start();
  const path = protocol === "chat" ? "chat/completions" : "responses";
  const body = JSON.stringify({ stream: true, stream_options: { include_usage: true } });
  return await (await fetch(`${stage.provider.url}/${path}`, { method: "POST", body })).text();
}

describe("connections to the provider", () => {
  /** One request, and long enough after it that its connection is seen to be kept. */
  async function warm(stage: LlmStage): Promise<void> {
    await ask(stage, "live");
    await Bun.sleep(100);
  }

  test("are kept: requests one after another need one", async () => {
    await using stage = await LlmStage.start();
    await warm(stage);
    for (let run = 0; run < 10; run += 1) await ask(stage, (["live", "stream", "job"] as const)[run % 3] ?? "live");
    expect([stage.provider.exchanges.length, stage.provider.accepted]).toEqual([11, 1]);
  });

  test("that close without a word after each stream make no request fail", async () => {
    await using stage = await LlmStage.start();
    stage.provider.otherwise = { kind: "answer", connection: "silent_close" };
    for (let run = 0; run < 30; run += 1) expect((await ask(stage, "live")).status).toBe(200);
    const many = await Promise.all(Array.from({ length: 30 }, () => ask(stage, "live")));
    expect(new Set(many.map(({ status }) => status))).toEqual(new Set([200]));
    expect(stage.provider.exchanges).toHaveLength(60);
  });

  test("that are not there after first_byte_seconds are given up, and the request may be repeated", async () => {
    // It accepts, and says nothing to the greeting of TLS.
    using silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
    const base_url = `https://127.0.0.1:${silent.port}/v1`;
    await using stage = await LlmStage.start({ table: { base_url, first_byte_seconds: 0.1 } });
    const refused = await ask(stage, "live");
    expect([refused.status, refused.code]).toEqual([503, "upstream_unavailable"]);
    expect(stage.logged.join("\n")).toContain("first_byte_seconds passed");
  });

  test.each([
    ["first_byte_seconds", { kind: "hang" }],
    ["idle_seconds", { kind: "hang_inside", after: 1 }],
    ["total_seconds", { kind: "hang_inside", after: 1 }],
  ] as const)("%s ends the call, and the provider sees it", async (limit, script) => {
    await using stage = await LlmStage.start({ table: { [limit]: 0.1 } });
    stage.provider.play(script);
    expect((await ask(stage, "live")).status).toBe(503);
    await stage.provider.exchanges[0]?.closed;
    expect(stage.logged.join("\n")).toContain(`${limit} passed`);
  });

  test("carry the provider's key and nothing of the client's", async () => {
    await using stage = await LlmStage.start();
    await ask(stage, "live", {}, { "x-client": "1", "user-agent": "client", cookie: "a=b", "idempotency-key": "mine" });
    const { headers } = stage.provider.exchanges[0] ?? {};
    expect(headers).toMatchObject({
      authorization: `Bearer ${SECRET}`,
      accept: "text/event-stream",
      "user-agent": "tendon",
    });
    expect(JSON.stringify(headers)).not.toMatch(/x-client|cookie|mine|tdn_/);
  });
});
