/** The stream of a background job, and the comments of every stream that has nothing to say. */
import { beforeEach, describe, expect, test } from "bun:test";
import type { ResponseStream } from "../../src/llm/command.ts";
import { EventFlow } from "../../src/llm/output/flow.ts";
import type { ResponseObject } from "../../src/llm/output/object.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { ask, expectLedger, PROTOCOLS } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import { eventsOf, JOB, LlmStage, pass } from "./stage.ts";

const MINUTE = 60_000;

describe("the stream of a job", () => {
  test.each(PROTOCOLS)("%s: headers, its beginning, its whole output, its end", async (protocol) => {
    await using stage = await LlmStage.start({ protocol });
    stage.provider.play({ kind: "answer", text: "Hello, all at once.", deltas: 9 });
    const { headers, events, response, done } = await ask(stage, "buffered");
    expect([headers.get("x-service-streaming"), headers.get("location"), headers.get("content-type")]).toEqual([
      "buffered",
      `/v1/responses/${response?.id}`,
      "text/event-stream; charset=utf-8",
    ]);
    expect([expectStack(events), done]).toEqual(["Hello, all at once.", true]);
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.queued",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(events[0]).toMatchObject({ response: { status: "queued", background: true } });
    const got = await stage.get(headers.get("location") ?? "");
    expect(await got.json()).toEqual(response as object);
  });

  test("begins before the job ends; one that is opened later says in_progress, and both get the end", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer", gapMs: 30 });
    const key = { "idempotency-key": "k" };
    const first = await stage.post({ model: JOB, stream: true }, key);
    const id = first.headers.get("location")?.split("/").at(-1) ?? "";
    const early = (await (await stage.get(`/v1/responses/${id}`)).json()) as ResponseObject;
    expect(early.status).toBeOneOf(["queued", "in_progress"]);
    while (stage.provider.exchanges.length === 0) await Bun.sleep(1);
    const second = await stage.post({ model: JOB, stream: true }, key);
    const streams = [eventsOf(await first.text()), eventsOf(await second.text())];
    expect(streams.map(({ events }) => events[1]?.type)).toEqual(["response.queued", "response.in_progress"]);
    for (const { events, done } of streams)
      expect([expectStack(events), done]).toEqual(["Hello from the provider.", true]);
    expect(stage.provider.exchanges).toHaveLength(1);
  });

  test("closing it cancels nothing", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer", gapMs: 10 });
    const left = new AbortController();
    const answer = await stage.post({ model: JOB, stream: true }, { "idempotency-key": "k" }, { signal: left.signal });
    expect(answer.status).toBe(200);
    left.abort();
    const { response } = await ask(stage, "job", { stream: true }, { "idempotency-key": "k" });
    expect(response?.status).toBe("completed");
    expect(stage.provider.exchanges).toHaveLength(1);
    await expectLedger(stage, 12n * 600n + 8n * 2200n);
  });

  test("a job that has failed ends its stream with response.failed, after what had come", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "cut", after: 2, gapMs: 20, text: "One two three.", deltas: 7 });
    const { events, done, response } = await ask(stage, "buffered");
    expect([expectStack(events, "response.failed"), done]).toEqual(["One ", true]);
    expect(response).toMatchObject({ status: "failed", output_text: "One ", output: [{ status: "incomplete" }] });
  });
});

describe("with a clock that a test moves", () => {
  let clock: FakeClock;
  beforeEach(() => {
    clock = new FakeClock();
  });

  /** All that a stream has to say, as text. */
  async function readAll(flow: EventFlow): Promise<string> {
    let text = "";
    for (let piece = await flow.pull(); piece; piece = await flow.pull()) text += new TextDecoder().decode(piece);
    await flow.close();
    return text;
  }

  test("a stream says `: keepalive` every 10 s in which there is nothing else, and no more than one at a time", async () => {
    const flow = new EventFlow(clock);
    const decoder = new TextDecoder();
    for (let tick = 0; tick < 3; tick += 1) {
      const pulled = flow.pull();
      clock.advance(9_999);
      clock.advance(1);
      expect(decoder.decode(await pulled)).toBe(": keepalive\n\n");
    }
    clock.advance(MINUTE);
    expect(decoder.decode(await flow.pull())).toBe(": keepalive\n\n");
    const pulled = flow.pull();
    flow.end("done");
    expect(decoder.decode(await pulled)).toBe("data: [DONE]\n\n");
    expect(await flow.pull()).toBeUndefined();
    await flow.close();
    expect(clock.armed).toBe(0);
  });

  test("a job's stream lasts 30 minutes, says stream_timeout in both forms, and the job goes on", async () => {
    await using stage = await LlmStage.start({ clock });
    const { flow } = (await stage.respond({ model: JOB, stream: true })) as ResponseStream;
    await stage.asked(1);
    const text = readAll(flow);
    await pass(clock, 31 * MINUTE, 10_000);
    const { events, done, comments } = eventsOf(await text);
    expect([events.map(({ type }) => type), done]).toEqual([["response.created", "response.queued", "error"], false]);
    expect(comments).toBeGreaterThan(170);
    const message = events[2]?.message;
    const flat = { code: "stream_timeout", message, param: null };
    expect(events[2]).toEqual({ type: "error", sequence_number: 2, ...flat, error: { type: "api_error", ...flat } });
    expect(message).toContain("the job goes on");
    expect(stage.provider.exchanges[0]?.state).toBe("open");
  });

  test("one that cannot read its job says stream_unavailable, and the job goes on", async () => {
    await using stage = await LlmStage.start({ clock });
    const { flow } = (await stage.respond({ model: JOB, stream: true })) as ResponseStream;
    await stage.asked(1);
    const text = readAll(flow);
    await pass(clock, 1_000);
    stage.store.down = true;
    await pass(clock, 15_000, 1_000);
    const { events, done } = eventsOf(await text);
    expect([events.at(-1)?.type, events.at(-1)?.code, done]).toEqual(["error", "stream_unavailable", false]);
    expect(stage.provider.exchanges[0]?.state).toBe("open");
  });

  test("one whose reader has left asks the store no more", async () => {
    await using stage = await LlmStage.start({ clock });
    const { armed } = clock;
    const { flow } = (await stage.respond({ model: JOB, stream: true })) as ResponseStream;
    await stage.asked(1);
    await flow.pull();
    await flow.close();
    await pass(clock, 1_000);
    expect(clock.armed).toBe(armed);
  });
});
