/** A client that leaves, or reads slowly, changes nothing: the answer is read to its end, stored, and charged once. */
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { EventFlow } from "../../src/llm/output/flow.ts";
import type { ResponseObject } from "../../src/llm/output/object.ts";
import { systemClock } from "../../src/std/clock.ts";
import { ask, ending, expectLedger, PROTOCOLS } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import { eventsOf, LIVE, LlmStage } from "./stage.ts";

const CHARGE = 12n * 600n + 8n * 2200n;
const KEY = { "idempotency-key": "k" };

/** The id of a stream's response, from its first event; then the client leaves. */
async function begunThenLeft(stage: LlmStage): Promise<string> {
  const left = new AbortController();
  const answer = await stage.post({ stream: true }, KEY, { signal: left.signal });
  const reader = answer.body?.getReader();
  const first = new TextDecoder().decode((await reader?.read())?.value);
  left.abort();
  return /"id":"(resp_[A-Za-z0-9]+)"/.exec(first)?.[1] ?? "";
}

describe.each(PROTOCOLS)("%s: a client that leaves", (protocol) => {
  test("a live stream: GET and its key return the whole answer, charged once", async () => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.play({ kind: "answer", gapMs: 10 });
    const id = await begunThenLeft(stage);
    const early = (await (await stage.get(`/v1/responses/${id}`)).json()) as ResponseObject;
    expect([early.status, early.output, early.usage]).toEqual(["in_progress", [], null]);
    const again = await ask(stage, "live", { stream: true }, KEY);
    expect([again.headers.get("idempotent-replayed"), again.response?.id]).toEqual(["true", id]);
    expect(expectStack(again.events)).toBe("Hello from the provider.");
    const stored = (await (await ending(stage, id)).json()) as ResponseObject;
    expect(stored).toEqual(again.response as ResponseObject);
    expect([stage.provider.exchanges.length, stage.provider.exchanges[0]?.state]).toEqual([1, "answered"]);
    await expectLedger(stage, CHARGE);
  });

  test("a plain request: its key returns the answer, charged once", async () => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.play({ kind: "answer", gapMs: 10 });
    const left = new AbortController();
    const answer = stage.post({}, KEY, { signal: left.signal }).catch(() => "left");
    while (stage.provider.exchanges.length === 0) await Bun.sleep(1);
    left.abort();
    expect(await answer).toBe("left");
    const again = await ask(stage, "live", {}, KEY);
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    expect(stage.provider.exchanges).toHaveLength(1);
    await expectLedger(stage, CHARGE);
  });

  test("a live stream that then fails: nothing is charged, GET says so", async () => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.play({ kind: "cut", after: 3, gapMs: 10 });
    const id = await begunThenLeft(stage);
    const stored = (await (await ending(stage, id)).json()) as ResponseObject;
    expect([stored.status, stored.error?.code]).toEqual(["failed", "invalid_upstream_response"]);
    await expectLedger(stage, 0n);
  });
});

describe("a slow reader", () => {
  const word = "word ".repeat(20);
  const deltas = Array.from({ length: 3_000 }, () => word);

  test("gets all of the text, in fewer and longer deltas", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer", deltas });
    const socket = await request(stage);
    while (stage.provider.exchanges[0]?.state !== "answered") await Bun.sleep(5);
    const { events, done } = eventsOf(await socket.rest());
    expect([expectStack(events) === deltas.join(""), done]).toEqual([true, true]);
    await expectLedger(stage, CHARGE);
  });

  test("that never reads: the answer is read to its end, stored and charged once all the same", async () => {
    await using stage = await LlmStage.start();
    // More than the buffers of both sockets hold.
    stage.provider.play({ kind: "answer", deltas: Array.from({ length: 100 }, () => "x".repeat(10_000)) });
    const socket = await request(stage);
    while ((await stage.money()).settled === 0n) await Bun.sleep(5);
    await expectLedger(stage, CHARGE);
    const again = await ask(stage, "live", { stream: true }, KEY);
    expect(again.response?.output_text).toHaveLength(1_000_000);
    expect(stage.provider.exchanges).toHaveLength(1);
    socket.leave();
  });

  test("has at most the answer waiting for it, and not each of its deltas", async () => {
    const flow = new EventFlow(systemClock);
    const at = { item_id: "msg_1", output_index: 0, content_index: 0, logprobs: [] };
    for (let n = 0; n < 100_000; n += 1) flow.push({ type: "response.output_text.delta", ...at, delta: "word " });
    flow.end("done");
    let [text, pieces] = ["", 0];
    for (let piece = await flow.pull(); piece; piece = await flow.pull()) {
      text += new TextDecoder().decode(piece);
      pieces += 1;
    }
    await flow.close();
    const { events, done } = eventsOf(text);
    expect(events.map(({ delta }) => delta).join("")).toBe("word ".repeat(100_000));
    expect([events.length, done]).toEqual([64, true]);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    expect(pieces).toBeLessThan(10);
  });
});

/** A stream over a socket of the test's own, which takes nothing until it is told to. */
async function request(stage: LlmStage): Promise<{ rest(): Promise<string>; leave(): void }> {
  const { hostname, port } = new URL(stage.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.pause();
  const body = JSON.stringify({ model: LIVE, input: "Say hello.", stream: true });
  const head = [
    "POST /v1/responses HTTP/1.1",
    "host: x",
    `authorization: Bearer ${stage.key}`,
    "idempotency-key: k",
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  while (stage.provider.exchanges.length === 0) await Bun.sleep(1);
  const rest = async () => {
    const pieces: Buffer[] = [];
    for await (const piece of socket) pieces.push(piece as Buffer);
    const bytes = Buffer.concat(pieces).toString("utf8");
    return unchunked(bytes.slice(bytes.indexOf("\r\n\r\n") + 4));
  };
  return { rest, leave: () => socket.destroy() };
}

/** The body without its chunks, for ASCII. */
function unchunked(body: string): string {
  let text = "";
  for (let at = 0; ; ) {
    const line = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.slice(at, line), 16);
    if (!(size > 0)) return text;
    text += body.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
}
