/** Reads of responses and repeats: what they ask by the address, what they cost, and what `store: false` keeps from them. */
import { describe, expect, spyOn, test } from "bun:test";
import OpenAI from "openai";
import type { ResponseStream } from "../../src/llm/command.ts";
import type { ResponseObject } from "../../src/llm/output/object.ts";
import { forgetResponses } from "../../src/llm/record.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { ask, expectLedger, toldBy } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import { JOB, LIVE, LlmStage } from "./stage.ts";

const KEY = { "idempotency-key": "k" };

/** Status and code of a read. */
async function read(stage: LlmStage, id: string, query = "") {
  const { status, code, param } = await toldBy(await stage.get(`/v1/responses/${id}${query}`));
  return [status, code, param];
}

describe("replays and reads are unpaid work, as for robots", () => {
  /** Whatever is unpaid work uses it up. */
  const unpaidSeconds = 1e-6;
  const refused = [429, "rate_limited"];

  test("what is paid for is none, in whatever manner", async () => {
    await using stage = await LlmStage.start({ unpaidSeconds });
    for (const body of [{}, { stream: true }, { model: JOB }, { model: JOB, stream: true }, {}])
      expect((await toldBy(await stage.post(body))).status).toBe(200);
  });

  test.each([
    ["a read", (stage: LlmStage, id: string) => stage.get(`/v1/responses/${id}`), 200],
    ["a read as a stream", (stage: LlmStage, id: string) => stage.get(`/v1/responses/${id}?stream=true`), 200],
    ["a read of what is not there", (stage: LlmStage, id: string) => stage.get(`/v1/responses/${id}0`), 404],
    ["a repeat of its key", (stage: LlmStage) => stage.post({}, KEY), 200],
  ] as const)(
    "%s counts; above the bound reads and requests are 429 at the door, with Retry-After",
    async (_, again, status) => {
      await using stage = await LlmStage.start({ unpaidSeconds });
      const { response } = await ask(stage, "live", {}, KEY);
      const id = response?.id ?? "";
      const first = await again(stage, id);
      await first.text();
      expect(first.status).toBe(status);
      const reads = spyOn(stage.service.llm.deps.store, "response");
      for (const next of [await stage.get(`/v1/responses/${id}`), await again(stage, id), await stage.post({}, KEY)]) {
        expect([next.status, ((await next.json()) as { error: { code: string } }).error.code]).toEqual(refused);
        expect(Number(next.headers.get("retry-after"))).toBeGreaterThan(0);
      }
      expect(reads).not.toHaveBeenCalled();
      expect((await stage.get("/v1/models")).status).toBe(200);
    },
  );

  test.each([LIVE, JOB])("%s: the events of a repeat are made and printed as unpaid work", async (model) => {
    await using stage = await LlmStage.start();
    const body = { model, stream: true };
    const { flow: first } = (await stage.respond(body)) as ResponseStream;
    const spend = spyOn(stage.service.http.unpaid, "spend");
    while (await first.pull());
    expect(spend).not.toHaveBeenCalled();
    const { flow } = (await stage.respond(body)) as ResponseStream;
    const made = spend.mock.calls.length;
    expect(made).toBeGreaterThan(0);
    while (await flow.pull());
    expect(spend.mock.calls.length).toBeGreaterThan(made);
  });
});

describe("a read of a running job", () => {
  test("does not parse its text again, and shows it in progress with every byte else", async () => {
    await using stage = await LlmStage.start();
    stage.provider.otherwise = { kind: "hang_inside", after: 1 };
    const body = {
      model: JOB,
      instructions: '"status":"queued"',
      tools: [{ type: "function", name: "a", parameters: { status: "queued" } }],
    };
    const { id } = (await (await stage.post(body, KEY)).json()) as ResponseObject;
    await stage.asked(1);
    const [row] = stage.store.rows<{ object: string }>("SELECT object FROM responses");
    const parse = spyOn(JSON, "parse");
    const polled = [await stage.get(`/v1/responses/${id}`), await stage.get(`/v1/responses/${id}`)];
    const repeat = await stage.post(body, KEY);
    const texts = await Promise.all([...polled, repeat].map((answer) => answer.text()));
    const parsed = parse.mock.calls.filter(([text]) => String(text).includes(id));
    parse.mockRestore();
    expect(parsed).toEqual([]);
    const shown = JSON.stringify({ ...JSON.parse(row?.object ?? ""), status: "in_progress" });
    expect(texts).toEqual([shown, shown, shown]);
  });
});

describe("query parameters of a read", () => {
  test.each([
    ["x=1", "x"],
    ["stream=yes", "stream"],
    ["stream=", "stream"],
    ["stream=true&stream=true", "stream"],
    ["starting_after=3", "starting_after"],
    ["stream=false&starting_after=3", "starting_after"],
    ["stream=true&starting_after=-1", "starting_after"],
    ["include=reasoning.encrypted_content", "include"],
    ["include[]=reasoning.encrypted_content", "include[]"],
    ["include_obfuscation=false", "include_obfuscation"],
    ["Stream=true", "Stream"],
    ["constructor=1", "constructor"],
  ])("%s: 422 with its name as param", async (query, param) => {
    await using stage = await LlmStage.start();
    const { response } = await ask(stage, "job");
    expect(await read(stage, response?.id ?? "", `?${query}`)).toEqual([422, "invalid_request", param]);
  });

  test("stream=false and an empty include ask for what comes anyway", async () => {
    await using stage = await LlmStage.start();
    const { response } = await ask(stage, "live");
    const got = await stage.get(`/v1/responses/${response?.id}?stream=false&include=`);
    expect(await got.json()).toEqual(response as object);
  });

  test("stream=true sends the events from the beginning, of a response that has ended and of one that runs", async () => {
    await using stage = await LlmStage.start();
    const ended = await ask(stage, "stream");
    const told = await toldBy(await stage.get(`/v1/responses/${ended.response?.id}?stream=true`));
    expect([expectStack(told.events), told.done]).toEqual(["Hello from the provider.", true]);
    expect(told.response).toEqual(ended.response);
    stage.provider.otherwise = { kind: "answer", gapMs: 20 };
    const first = await stage.post({ stream: true });
    const { value = new Uint8Array() } = (await first.body?.getReader().read()) ?? {};
    const [, id] = /"id":"(resp_\w+)"/.exec(new TextDecoder().decode(value)) ?? [];
    const running = await toldBy(await stage.get(`/v1/responses/${id}?stream=true`));
    expect([expectStack(running.events), running.done, running.response?.id]).toEqual([
      "Hello from the provider.",
      true,
      id,
    ]);
  });

  test("starting_after leaves out what came before on a background stream, and is 422 for a live one, whose repeat has other numbers", async () => {
    await using stage = await LlmStage.start();
    const { response, events } = await ask(stage, "buffered");
    const from = async (after: number) =>
      await toldBy(await stage.get(`/v1/responses/${response?.id}?stream=true&starting_after=${after}`));
    const told = await from(3);
    expect([told.events, told.done]).toEqual([events.slice(4), true]);
    const past = await from(99);
    expect([past.status, past.events, past.done]).toEqual([200, [], true]);
    const live = await ask(stage, "stream");
    expect(await read(stage, live.response?.id ?? "", "?stream=true&starting_after=3")).toEqual([
      422,
      "invalid_request",
      "starting_after",
    ]);
  });

  test("the openai client retrieves a stream, and its helper goes on behind a number", async () => {
    await using stage = await LlmStage.start();
    const { response, events } = await ask(stage, "buffered");
    const id = response?.id ?? "";
    const { responses } = new OpenAI({ baseURL: `${stage.url}/v1`, apiKey: stage.key, maxRetries: 0 });
    const types: string[] = [];
    for await (const { type } of await responses.retrieve(id, { stream: true, starting_after: 2 })) types.push(type);
    expect(types).toEqual(events.slice(3).map(({ type }) => type));
    const helped = await responses.stream({ response_id: id, starting_after: 2 }).finalResponse();
    expect(helped.output_text).toBe("Hello from the provider.");
  });
});

describe("store: false on :superfast", () => {
  const DAY = 86_400_000;

  test.each([{}, { stream: true }])(
    "%j: its key replays it for 24 hours, no read finds it, and a day later it is forgotten",
    async (more) => {
      const clock = new FakeClock();
      await using stage = await LlmStage.start({ clock });
      stage.provider.otherwise = { kind: "answer" };
      const body = { ...more, store: false };
      const told = await toldBy(await stage.post(body, KEY));
      const kept = await toldBy(await stage.post(more, { "idempotency-key": "kept" }));
      expect(told.response).toMatchObject({ status: "completed", store: false });
      const id = told.response?.id ?? "";
      for (const query of ["", "?stream=true"])
        expect((await read(stage, id, query)).slice(0, 2)).toEqual([404, "not_found"]);
      clock.advance(DAY);
      await forgetResponses(stage.service.llm.deps, 30);
      const again = await toldBy(await stage.post(body, KEY));
      expect([again.headers.get("idempotent-replayed"), again.response]).toEqual(["true", told.response]);
      clock.advance(1_000);
      await forgetResponses(stage.service.llm.deps, 30);
      expect(stage.store.rows("SELECT id FROM responses")).toEqual([{ id: kept.response?.id }]);
      expect((await read(stage, kept.response?.id ?? ""))[0]).toBe(200);
      const anew = await toldBy(await stage.post(body, KEY));
      expect([anew.headers.get("idempotent-replayed"), anew.response?.id === id]).toEqual([null, false]);
      await expectLedger(stage, "something");
    },
  );

  test("a read finds it neither while it runs nor after it has failed, and the key stays spent", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "cut", after: 2, gapMs: 50 });
    const first = await stage.post({ stream: true, store: false }, KEY);
    const reader = first.body?.getReader();
    const { value = new Uint8Array() } = (await reader?.read()) ?? {};
    const [, id = ""] = /"id":"(resp_\w+)"/.exec(new TextDecoder().decode(value)) ?? [];
    expect((await read(stage, id))[0]).toBe(404);
    while (!(await reader?.read())?.done);
    expect((await read(stage, id))[0]).toBe(404);
    expect((await ask(stage, "live", { stream: true, store: false }, KEY)).code).toBe("idempotency_replay_terminal");
  });
});
