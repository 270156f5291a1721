/** Each fault of a provider: what the client is told, what its key is worth then, what was charged, how often the provider was called. */
import { describe, expect, test } from "bun:test";
import { ask, expectLedger, expectNoSecret, PROTOCOLS, type Told, toldBy } from "./asking.ts";
import { expectStack } from "./event-stack.ts";
import type { Script } from "./script.ts";
import type { Play } from "./scripted-provider.ts";
import { LlmStage, SECRET } from "./stage.ts";

/** What the contract makes of a fault. */
interface Kind {
  readonly status: number;
  readonly code: string;
  /** What the key is worth after it. */
  readonly key: "free" | "spent";
}

const UNAVAILABLE: Kind = { status: 503, code: "upstream_unavailable", key: "free" };
const INVALID: Kind = { status: 502, code: "invalid_upstream_response", key: "spent" };
const rejected = (status: number): Kind => ({ status, code: "upstream_rejected", key: "spent" });

interface Case extends Kind {
  readonly script: Script;
  /** Events of a live stream were on their way already. */
  readonly inside?: true;
  readonly retryAfter?: RegExp;
  readonly table?: object;
}

const CASES: Record<string, Case> = {};
const refuse = (status: number, headers = {}): Script => ({ kind: "refuse", status, headers });

for (const status of [401, 402, 403, 404, 405, 407, 408, 410, 424, 429, 499, 500, 502, 503, 529])
  CASES[`status ${status}`] = { ...UNAVAILABLE, script: refuse(status) };
for (const status of [400, 409, 413, 415, 422, 451])
  CASES[`status ${status}`] = { ...rejected(status), script: refuse(status) };
for (const status of [201, 302])
  CASES[`status ${status}`] = { ...INVALID, script: refuse(status, { location: "http://127.0.0.1:1/" }) };

const LATER = new Date(Date.now() + 3_000_000).toUTCString();
const RETRIES: readonly (readonly [string, RegExp])[] = [
  ["7", /^7$/],
  ["0", /^1$/],
  ["999999999", /^3600$/],
  [LATER, /^(29|30)\d\d$/],
  ["Thu, 01 Jan 1970 00:00:00 GMT", /^1$/],
  ["soon", /^$/],
];
for (const [sent, retryAfter] of RETRIES) {
  const script = refuse(429, { "retry-after": sent });
  CASES[`status 429 with Retry-After ${sent === LATER ? "of a date" : sent}`] = { ...UNAVAILABLE, script, retryAfter };
}

const raw = (chunks: readonly string[], more = {}): Script => ({ kind: "raw", chunks, ...more });
Object.assign(CASES, {
  "hangs before its answer": { ...UNAVAILABLE, script: { kind: "hang" }, table: { first_byte_seconds: 0.4 } },
  "hangs after the head": { ...UNAVAILABLE, script: raw([], { last: "hang" }), table: { first_byte_seconds: 0.4 } },
  "hangs inside": {
    ...UNAVAILABLE,
    script: { kind: "hang_inside", after: 2 },
    table: { idle_seconds: 0.4 },
    inside: true,
  },
  "never ends": {
    ...UNAVAILABLE,
    script: { kind: "answer", deltas: Array.from({ length: 400 }, () => "on and "), gapMs: 10 },
    table: { total_seconds: 0.6 },
    inside: true,
  },
  "closes without a word": { ...UNAVAILABLE, script: raw([], { status: "none" }) },
  "resets without a word": { ...UNAVAILABLE, script: raw([], { status: "none", last: "reset" }) },
  "cuts before its first delta": { ...INVALID, script: { kind: "cut", after: 0, gapMs: 20 }, inside: true },
  "cuts inside by FIN": { ...INVALID, script: { kind: "cut", after: 2, gapMs: 20 }, inside: true },
  "cuts inside by RST": { ...INVALID, script: { kind: "cut", after: 2, manner: "reset", gapMs: 20 }, inside: true },
  "cuts inside, politely": { ...INVALID, script: { kind: "cut", after: 2, manner: "polite" }, inside: true },
  "cuts a stream that only its connection ends": {
    ...INVALID,
    script: { kind: "cut", after: 2, framing: "until_close" },
    inside: true,
  },
  "fails inside, in its own words": {
    ...UNAVAILABLE,
    script: { kind: "fail_inside", after: 2, gapMs: 20 },
    inside: true,
  },
  "sends an event that is no JSON": { ...INVALID, script: raw(['data: {"choices": [\n\n']) },
  "sends bytes that are no UTF-8": { ...INVALID, script: { kind: "raw", chunks: [new Uint8Array([0xff, 0xfe])] } },
  "sends an empty stream": { ...INVALID, script: raw([]) },
  "sends [DONE] alone": { ...INVALID, script: raw(["data: [DONE]\n\n"]), inside: true },
  "sends a page": { ...INVALID, script: raw(["<html>Hello</html>"], { headers: { "content-type": "text/html" } }) },
  "sends JSON that is no answer": {
    ...INVALID,
    script: raw(['{"hello": 1}'], { headers: { "content-type": "application/json" } }),
  },
  "sends what is no HTTP": { ...INVALID, script: raw(["220 smtp.example.org ESMTP\r\n"], { status: "none" }) },
  "sends a coding that nobody knows": {
    ...INVALID,
    script: raw(["HTTP/1.1 200 OK\r\ntransfer-encoding: zip\r\n\r\n"], { status: "none" }),
  },
  "sends a length that is no number": {
    ...INVALID,
    script: raw(["HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: x\r\n\r\n"], {
      status: "none",
    }),
  },
  "sends a wrong chunk size": {
    ...INVALID,
    script: raw(["HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"], {
      status: "none",
    }),
  },
  "sends a line of 10 MB": { ...INVALID, script: raw(["data: ", "x".repeat(10 * 2 ** 20), "\n\n"]), inside: true },
  "sends more output than any answer has": {
    ...INVALID,
    script: { kind: "answer", deltas: Array.from({ length: 9 }, () => "x".repeat(2 ** 17)) },
    inside: true,
  },
} satisfies Record<string, Case>);

const KEYS = { live: "live-1", stream: "stream-1", job: "job-1" } as const;
const ONCE = ["live", "stream", "job"] as const;

/** All ways at once. */
async function askAll(stage: LlmStage): Promise<Record<(typeof ONCE)[number], Told>> {
  const [live, stream, job] = await Promise.all(
    ONCE.map((manner) => ask(stage, manner, {}, { "idempotency-key": KEYS[manner] })),
  );
  if (!live || !stream || !job) throw new Error("each way has its answer");
  return { live, stream, job };
}

describe.each(PROTOCOLS)("%s: a provider that", (protocol) => {
  test.each(Object.entries(CASES))("%s", async (_, fault) => {
    await using stage = await LlmStage.start({ protocol, table: { ...fault.table } });
    stage.provider.play(fault.script, fault.script, fault.script);
    const first = await askAll(stage);
    expect(stage.provider.exchanges).toHaveLength(3);
    await expectLedger(stage, 0n);
    expectRefused(first.live, fault);
    if (fault.inside) await expectFailed(stage, first.stream, fault);
    else expectRefused(first.stream, fault);
    // A failure is the answer of a job.
    expect([first.job.status, first.job.response?.status, first.job.code]).toEqual([200, "failed", fault.code]);

    const again = await askAll(stage);
    expect([again.job.response, again.job.headers.get("idempotent-replayed")]).toEqual([first.job.response, "true"]);
    for (const told of [again.live, again.stream]) {
      if (fault.key === "free") expect([told.status, told.response?.status]).toEqual([200, "completed"]);
      else expect([told.status, told.code]).toEqual([409, "idempotency_replay_terminal"]);
      expect(told.headers.get("x-should-retry")).toBe(fault.key === "free" ? null : "false");
    }
    expect(stage.provider.exchanges).toHaveLength(fault.key === "free" ? 5 : 3);
    await expectLedger(stage, fault.key === "free" ? "something" : 0n);
    expectNoSecret(stage, ...Object.values(first), ...Object.values(again));
  });

  test.each([
    ["refuses the connection", "http://127.0.0.1:1/v1"],
    ["has no address", "http://provider.invalid/v1"],
  ])("%s", async (_, base_url) => {
    await using stage = await LlmStage.start({ protocol, table: { base_url } });
    for (const manner of ["live", "stream", "live"] as const) {
      const told = await ask(stage, manner, {}, { "idempotency-key": manner });
      expect([told.status, told.code]).toEqual([503, "upstream_unavailable"]);
      expect(told.text).not.toContain(new URL(base_url).host);
    }
    const job = await ask(stage, "job");
    expect([job.status, job.code]).toEqual([200, "upstream_unavailable"]);
    await expectLedger(stage, 0n);
  });
});

/** An HTTP error. That its key is spent is told to clients that repeat by themselves. */
function expectRefused(told: Told, { status, code, key, retryAfter = /^$/ }: Case): void {
  expect([told.status, told.code, told.events]).toEqual([status, code, []]);
  expect(told.headers.get("idempotency-key")).toBeOneOf(Object.values(KEYS));
  expect(told.headers.get("retry-after") ?? "").toMatch(retryAfter);
  expect(told.headers.get("x-should-retry")).toBe(key === "spent" ? "false" : null);
}

/** A stream that had begun: it ends as failed, with what had come, which `GET` shows as well. */
async function expectFailed(stage: LlmStage, told: Told, { code }: Case): Promise<void> {
  expect([told.status, told.done, told.code, told.response?.status]).toEqual([200, true, code, "failed"]);
  const text = expectStack(told.events, "response.failed");
  expect([told.response?.output_text, told.response?.usage]).toEqual([text, null]);
  const got = await stage.get(`/v1/responses/${told.response?.id}`);
  expect(await got.json()).toEqual(told.response as object);
}

describe("what a provider says", () => {
  const words = (stage: LlmStage) =>
    `No: ${SECRET} is not known at ${stage.provider.url}/x, localhost:${new URL(stage.provider.url).port}, [::1]:80. Use a shorter input.`;
  const tells: Readonly<Record<string, (said: string) => Play>> = {
    "in an error object": (said) => ({ kind: "refuse", status: 400, body: { error: { message: said } } }),
    "as an error": (said) => ({ kind: "refuse", status: 400, body: { error: said } }),
    "as a message": (said) => ({ kind: "refuse", status: 400, body: { message: said } }),
    "inside its stream": (said) => ({
      kind: "raw",
      chunks: [`data: ${JSON.stringify({ error: { message: said, code: 400 } })}\n\n`],
    }),
    "behind its first words": (said) => ({
      kind: "raw",
      chunks: [
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "Hel" }, finish_reason: null }] })}\n\n`,
        `data: ${JSON.stringify({ error: { message: said, code: 400, param: said } })}\n\n`,
      ],
      gapMs: 5,
    }),
  };

  test.each(Object.entries(tells))("%s stays in the log, without the key", async (_, tell) => {
    await using stage = await LlmStage.start();
    stage.provider.otherwise = tell(words(stage));
    for (const manner of ["live", "stream", "job"] as const) {
      const told = await ask(stage, manner);
      expect(told.code).toBe("upstream_rejected");
      const id = told.response?.id;
      const kept = id === undefined ? told : await toldBy(await stage.get(`/v1/responses/${id}`));
      const again = await ask(stage, manner, {}, { "idempotency-key": told.headers.get("idempotency-key") ?? "" });
      for (const { text } of [told, kept, again]) expect(text).not.toMatch(/No:|shorter/);
      expectNoSecret(stage, told, kept, again);
    }
    expect(stage.logged.join("\n")).toContain("No: [...] is not known at");
  });

  test.each([
    ["temperature", "temperature"],
    ["messages[0].content", "messages[0].content"],
    ["your key is not good", undefined],
    [SECRET, undefined],
    [null, undefined],
    [{ a: 1 }, undefined],
  ])("the field %j that it names is the param %j of the refusal, unless it is no field", async (param, told) => {
    await using stage = await LlmStage.start();
    stage.provider.otherwise = { kind: "refuse", status: 422, body: { error: { message: "No.", param } } };
    for (const manner of ["live", "stream"] as const) {
      const refused = await ask(stage, manner);
      expect([refused.status, refused.code, refused.param]).toEqual([422, "upstream_rejected", told]);
      expectNoSecret(stage, refused);
    }
  });

  test("at length is cut, and what is no error object is not logged", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play(
      { kind: "refuse", status: 400, body: { error: { message: "no ".repeat(10_000) } } },
      { kind: "refuse", status: 400, body: "<html>secret page</html>" },
    );
    for (const _ of [1, 2]) await ask(stage, "live");
    expect(stage.logged.every((line) => line.length < 800 && !line.includes("page"))).toBe(true);
  });
});
