/** Questions to a real service with a scripted provider, and to services that misbehave. */
import { describe, expect, test } from "bun:test";
import { askInBackground, askLive } from "../../src/client/ask.ts";
import { ErrorReply, NoAnswer, type Service } from "../../src/client/http.ts";
import { answerText, type Question, type ResponseObject, responseOf, shortcoming } from "../../src/client/responses.ts";
import { readDrills } from "../../src/drill.ts";
import { LIMITS } from "../../src/limits.ts";
import { EXIT, Problem } from "../../src/std/problem.ts";
import { JOB, LIVE, LlmStage } from "../llm/stage.ts";
import { CutProxy } from "../program/cut-proxy.ts";
import { FakeClock } from "../std/fake-clock.ts";

const question: Question = { model: LIVE, input: "Say hello." };
const job: Question = { model: JOB, input: "Say hello." };
const never = new AbortController().signal;

class Heard {
  readonly ids: string[] = [];
  readonly pieces: string[] = [];

  constructor(private readonly onText: () => void = () => {}) {}

  begun = (id: string): void => {
    this.ids.push(id);
  };

  text = async (piece: string): Promise<void> => {
    this.pieces.push(piece);
    this.onText();
  };
}

function whole(response: ResponseObject | Problem): ResponseObject {
  if (response instanceof Problem) throw new Error(response.message);
  return response;
}

const serviceOf = ({ url, key: apiKey }: LlmStage): Service => ({ url, apiKey });

/** The service behind a line that a test can cut. */
async function behindLine(stage: LlmStage) {
  const line = await CutProxy.before(Number(new URL(stage.url).port));
  return { line, service: { url: `http://127.0.0.1:${line.port}`, apiKey: stage.key } };
}

/** A service whose first stream breaks off, and whose repeat is another response. */
function forgetful() {
  let calls = 0;
  return Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket) {
        calls += 1;
        const [id, delta] = calls === 1 ? ["resp_first", "Half of th"] : ["resp_second", "Another answer."];
        const response = { id, status: "in_progress", output: [], error: null, incomplete_details: null };
        const events: { readonly type: string; readonly [field: string]: unknown }[] = [
          { type: "response.created", response },
          { type: "response.output_text.delta", delta },
        ];
        if (calls > 1) events.push({ type: "response.completed", response: { ...response, status: "completed" } });
        const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
        const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        socket.write(`${head}${text.length.toString(16)}\r\n${text}\r\n${calls === 1 ? "" : "0\r\n\r\n"}`);
        // The events are read before the end of the connection is seen.
        setTimeout(() => socket.end(), 50);
      },
    },
  });
}

test("a repeat that is another response begins on a new line: no text is made of halves", async () => {
  using server = forgetful();
  const heard = new Heard();
  const service = { url: `http://127.0.0.1:${server.port}`, apiKey: "k" };
  const response = whole(await askLive(service, question, heard, { key: "k1", signal: never }));
  expect([response.id, heard.pieces.join("")]).toEqual(["resp_second", "Half of th\nAnother answer."]);
});

describe("a live question", () => {
  test("brings its pieces as they come, then the whole response", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer", deltas: ["Hel", "lo, ", "🤖."], gapMs: 20 });
    const heard = new Heard();
    const asked = { ...question, instructions: "Be brief.", maxOutputTokens: 77 };
    const response = whole(await askLive(serviceOf(stage), asked, heard, { key: "k1", signal: never }));
    expect([heard.pieces.length > 1, heard.pieces.join("")]).toEqual([true, "Hello, 🤖."]);
    expect([response.status, answerText(response), heard.ids]).toEqual(["completed", "Hello, 🤖.", [response.id]]);
    const [sent] = stage.provider.exchanges;
    expect(sent?.body).toMatchObject({
      max_tokens: 77,
      messages: [{ content: "Be brief." }, { content: "Say hello." }],
    });
  });

  test("whose line is cut goes on where it was, with one call of the provider and one charge", async () => {
    await using stage = await LlmStage.start();
    const { line, service } = await behindLine(stage);
    await using _ = line;
    stage.provider.play({ kind: "answer", deltas: ["one ", "two ", "three"], gapMs: 50 });
    let cuts = 0;
    const heard = new Heard(() => {
      cuts += 1;
      if (cuts > 1) return;
      line.cut();
      line.mend();
    });
    const response = whole(await askLive(service, question, heard, { key: "k2", signal: never }));
    expect([answerText(response), heard.pieces.join("")]).toEqual(["one two three", "one two three"]);
    expect([new Set(heard.ids).size, stage.provider.exchanges.length]).toEqual([1, 1]);
  });

  test("is repeated once: a line that stays cut is told", async () => {
    await using stage = await LlmStage.start();
    const { line, service } = await behindLine(stage);
    await using _ = line;
    stage.provider.play({ kind: "answer", deltas: 5, gapMs: 50 });
    const heard = new Heard(() => line.cut());
    const problem = await askLive(service, question, heard, { key: "k3", signal: never });
    expect(problem).toBeInstanceOf(NoAnswer);
    expect([(problem as Problem).exit, (problem as Problem).message]).toEqual([
      EXIT.unreachable,
      expect.stringContaining("the connection to"),
    ]);
  });

  test("that fails says code and message; where nobody listens there is no second try", async () => {
    const drills = readDrills("upstream_unavailable:away,upstream_cut:cut");
    if (drills instanceof Problem) throw new Error(drills.message);
    await using stage = await LlmStage.start({ drills, without: ["llm-c-k3:superfast"] });
    const ask = (model: string, key: string, service = serviceOf(stage)) =>
      askLive(service, { ...question, model }, new Heard(), { key, signal: never });
    expect(await ask("llm-c-k3:superfast", "a")).toMatchObject({ code: "unconfigured", exit: EXIT.failed });
    expect(await ask(LIVE, "away-1")).toMatchObject({ code: "upstream_unavailable", exit: EXIT.failed });
    expect(await ask(LIVE, "b", { url: stage.url, apiKey: "tdn_wrong" })).toMatchObject({ exit: EXIT.notSignedIn });
    const cut = whole(await ask(LIVE, "cut-1"));
    expect([cut.status, shortcoming(cut)]).toEqual(["failed", expect.stringContaining("invalid_upstream_response: ")]);
    const started = performance.now();
    const nobody = await ask(LIVE, "c", { url: "http://127.0.0.1:1", apiKey: stage.key });
    expect([nobody, performance.now() - started < 500]).toMatchObject([{ exit: EXIT.unreachable }, true]);
  });

  test("that the service cannot confirm yet is sent again with its key until it can", async () => {
    const clock = new FakeClock();
    const keys: (string | null)[] = [];
    await using unsure = Bun.serve({
      port: 0,
      fetch: ({ headers }) => {
        keys.push(headers.get("idempotency-key"));
        const code = keys.length < 4 ? "submission_outcome_unknown" : "idempotency_replay_terminal";
        return Response.json({ error: { code, message: "m" } }, { status: 409 });
      },
    });
    const service = { url: `http://127.0.0.1:${unsure.port}`, apiKey: "k" };
    const outcome = askLive(service, question, new Heard(), { key: "k5", signal: never, clock });
    const moving = setInterval(() => clock.advance(1_000), 10);
    expect(await outcome).toMatchObject({ code: "idempotency_replay_terminal" });
    clearInterval(moving);
    expect(keys).toEqual(["k5", "k5", "k5", "k5"]);
  });

  test("can be left at once; the answer is kept all the same", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer", deltas: 5, gapMs: 30 });
    const left = new AbortController();
    const heard = new Heard(() => left.abort());
    await askLive(serviceOf(stage), question, heard, { key: "k4", signal: left.signal });
    const path = `/v1/responses/${heard.ids[0]}`;
    for (let tries = 0; tries < 100; tries += 1) {
      if ((await (await stage.get(path)).text()).includes('"status":"completed"')) break;
      await Bun.sleep(20);
    }
    expect(await (await stage.get(path)).json()).toMatchObject({ status: "completed" });
    expect(heard.pieces).toHaveLength(1);
  });

  test("to a service that falls silent ends after the time that a client waits", async () => {
    const clock = new FakeClock();
    const asked = Promise.withResolvers<void>();
    await using silent = Bun.serve({
      port: 0,
      fetch: () => {
        asked.resolve();
        return new Response(new ReadableStream({ start: (to) => to.enqueue(": keepalive\n\n") }), {
          headers: { "content-type": "text/event-stream" },
        });
      },
    });
    const service = { url: `http://127.0.0.1:${silent.port}`, apiKey: "k" };
    const outcome = askLive(service, question, new Heard(), { key: "k", signal: never, clock });
    const moving = setInterval(() => clock.advance(LIMITS.clientAnswerMs), 20);
    expect(await outcome).toBeInstanceOf(NoAnswer);
    clearInterval(moving);
    expect(clock.armed).toBe(0);
  });

  test("to something else than a tendon service is told so", async () => {
    for (const [body, type] of [
      ["<html>", "text/html"],
      ["{}", "application/json"],
      [`data: {"type":"response.completed","response":{}}\n\n`, "text/event-stream"],
    ] as const) {
      await using other = Bun.serve({
        port: 0,
        fetch: () => new Response(body, { headers: { "content-type": type } }),
      });
      const service = { url: `http://127.0.0.1:${other.port}`, apiKey: "k" };
      const problem = await askLive(service, question, new Heard(), { key: "k", signal: never });
      const message = expect.stringContaining("response object");
      expect([type, problem]).toMatchObject([type, { exit: EXIT.failed, message }]);
    }
  });
});

describe("a question in the background", () => {
  test("is submitted once, looked after until it ends", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer", text: "Done.", deltas: 4, gapMs: 150 });
    const heard = new Heard();
    const response = whole(await askInBackground(serviceOf(stage), job, heard.begun, { key: "j1", signal: never }));
    expect([response.status, answerText(response), heard.ids]).toEqual(["completed", "Done.", [response.id]]);
    expect(stage.provider.exchanges).toHaveLength(1);
  });

  test("survives a line that is down for a while, and ends where the service forgets the response", async () => {
    await using stage = await LlmStage.start();
    const { line, service } = await behindLine(stage);
    await using _ = line;
    stage.provider.play({ kind: "answer", text: "Done.", deltas: 4, gapMs: 300 });
    const begun = () => {
      line.cut();
      setTimeout(() => line.mend(), 600);
    };
    const response = whole(await askInBackground(service, job, begun, { key: "j2", signal: never }));
    expect(answerText(response)).toBe("Done.");
    let calls = 0;
    await using forgetful = Bun.serve({
      port: 0,
      fetch: () => {
        calls += 1;
        if (calls === 1) return Response.json({ ...response, status: "queued" });
        return Response.json({ error: { code: "not_found", message: "gone" } }, { status: 404 });
      },
    });
    const at = { url: `http://127.0.0.1:${forgetful.port}`, apiKey: "k" };
    const gone = await askInBackground(at, job, () => {}, { key: "j3", signal: never });
    expect([gone instanceof ErrorReply, calls]).toEqual([true, 2]);
  });

  test("can be left between two looks", async () => {
    await using stage = await LlmStage.start();
    stage.provider.play({ kind: "answer", deltas: 3, gapMs: 2_000 });
    const left = new AbortController();
    const started = performance.now();
    await askInBackground(serviceOf(stage), job, () => left.abort(), { key: "j4", signal: left.signal });
    expect(performance.now() - started).toBeLessThan(1_500);
  });
});

describe("a response object", () => {
  const message = (...content: object[]) => ({ type: "message", content });
  const object = (extra: object): ResponseObject =>
    whole(
      responseOf({
        ...{ id: "resp_1", status: "completed", output: [], error: null, incomplete_details: null },
        ...extra,
      }) ?? new Problem("it is none"),
    );

  test("has the text of all messages, refusals too, and of nothing else", () => {
    const output = [
      { type: "reasoning", content: [{ type: "reasoning_text", text: "hm" }], summary: [] },
      message({ type: "output_text", text: "a" }, { type: "output_text", text: "b" }),
      message({ type: "refusal", refusal: "no" }),
      { type: "function_call", name: "f", arguments: "{}" },
    ];
    expect(answerText(object({ output }))).toBe("abno");
  });

  test("that is not whole says why", () => {
    const why = (extra: object) => shortcoming(object(extra));
    expect(why({})).toBeUndefined();
    expect(why({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } })).toContain(
      "--max-output-tokens",
    );
    expect(why({ status: "failed", error: { code: "c", message: "m\u001b[2J" } })).toBe("c: m [2J");
    expect(why({ status: "cancelled" })).toBe("the response is cancelled");
    expect(responseOf({ ...object({}), id: "../../v1/models" })).toBeUndefined();
  });
});
