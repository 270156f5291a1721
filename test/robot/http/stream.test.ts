/** Streaming rules 1 to 5 of the specification, and what contract section 2 says about streams. */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/engine/fault.ts";
import { observation, stage, withContent } from "../stage.ts";
import { expectClean, failure, holdModel, session, settle } from "./outcome.ts";

const streamed = { ...session, stream: true };

/** The pieces of a body as they are written. */
async function pieces(response: Response): Promise<string[]> {
  const decoder = new TextDecoder();
  const texts: string[] = [];
  for await (const piece of response.body ?? []) texts.push(decoder.decode(piece));
  return texts;
}

function data(piece: string | undefined): Record<string, unknown> {
  return JSON.parse(/^data: (\{.*\})\n\n$/.exec(piece ?? "")?.[1] ?? "null");
}

test("rules 1 to 4: comments, the chunk, the end with usage, [DONE]; each event is written whole", async () => {
  const at = await stage();
  const response = await at.chat(streamed);
  const id = response.headers.get("x-generation-id");
  expect(response.headers.get("content-type")).toStartWith("text/event-stream");
  expect([response.status, response.headers.get("x-session-step")]).toEqual([200, "0"]);
  const written = await pieces(response);
  const plain = (await (await at.chat(observation({ session_id: "t" }))).json()) as {
    choices: [{ message: { content: string } }];
    usage: object;
  };
  const head = { id, object: "chat.completion.chunk", created: 1_700_000_000, model: session.model };
  const content = plain.choices[0].message.content.replace('"session_id":"t"', '"session_id":"s"');
  expect(written[0]).toBe(": processing\n\n");
  expect(data(written[1])).toEqual({
    ...head,
    choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: null }],
  });
  expect(data(written[2])).toEqual({
    ...head,
    choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
    usage: plain.usage,
  });
  expect(written.slice(3)).toEqual(["data: [DONE]\n\n"]);
  await expectClean(at, 1);
});

test("rule 1: the first `: processing` comes at once, then one every 250 ms", async () => {
  const at = await stage();
  const release = holdModel(at);
  const reader = (await at.chat(streamed)).body?.getReader();
  const read = async () => new TextDecoder().decode((await reader?.read())?.value);
  expect(await read()).toBe(": processing\n\n");
  const second = read();
  at.clock.advance(249);
  expect(await Promise.race([second, settle().then(() => "nothing yet")])).toBe("nothing yet");
  at.clock.advance(1);
  expect(await second).toBe(": processing\n\n");
  at.clock.advance(250);
  expect(await read()).toBe(": processing\n\n");
  release();
  expect(await read()).toStartWith("data: ");
});

test("rule 5: a failure after the stream starts is an event with `error` and finish_reason error, then [DONE]", async () => {
  const at = await stage();
  at.engine.script.run = async () => new Fault("model_failed", "the model failed", "secret");
  const response = await at.chat(streamed);
  const written = await pieces(response);
  expect([response.status, written.length, written[2]]).toEqual([200, 3, "data: [DONE]\n\n"]);
  expect(data(written[1])).toEqual({
    id: response.headers.get("x-generation-id"),
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: session.model,
    choices: [{ index: 0, delta: {}, finish_reason: "error" }],
    error: {
      message: "the model failed; retry, and tell the operator if it goes on",
      type: "api_error",
      code: "model_failure",
    },
  });
  expect(at.logLines.join()).toContain("secret");
  await expectClean(at, 0);
});

test("a fault of our own after the start is an event too", async () => {
  const at = await stage();
  at.store.beforeKeep = async () => {
    throw new Error("secret");
  };
  const written = await pieces(await at.chat(streamed));
  expect(data(written[1])).toMatchObject({ error: { code: "internal_error" } });
  expect([written[2], written.join().includes("secret")]).toEqual(["data: [DONE]\n\n", false]);
  at.store.beforeKeep = async () => undefined;
  await expectClean(at, 0);
});

test("every check up to capacity runs before the stream starts and answers as plain JSON", async () => {
  const at = await stage();
  at.engine.slotsPerModel = 0;
  const refused: [string, Record<string, unknown>][] = [
    ["handoff_unavailable", { ...streamed, handoff: true }],
    ["session_expired", { ...streamed, expected_step: 3 }],
    ["invalid_image", { ...streamed, robot_state: { joint_position: Array(12).fill(0), gripper_position: [0, 2] } }],
  ];
  for (const [code, body] of refused) {
    const response = await at.chat(body);
    expect(response.headers.get("content-type")).toStartWith("application/json");
    expect((await failure(response)).code).toBe(code);
  }
  at.engine.script.observe = () => new Fault("busy", "every result slot is taken");
  const full = await at.chat(streamed);
  expect([full.headers.get("retry-after"), (await failure(full)).code]).toEqual(["1", "engine_unavailable"]);
});

test("a description streams like a chunk when stream is true", async () => {
  const at = await stage();
  const body = withContent("what are you?", { stream: true });
  const response = await at.chat(body);
  const written = await pieces(response);
  const plain = (await (await at.chat({ ...body, stream: false })).json()) as {
    choices: [{ message: { content: string } }];
  };
  expect(written[0]).toBe(": processing\n\n");
  expect(data(written[1])).toMatchObject({ choices: [{ delta: { content: plain.choices[0].message.content } }] });
  expect([written.length, response.headers.get("x-session-step")]).toEqual([4, null]);
});

test("a client that leaves a stream before the model has started cancels; afterwards the chunk is committed", async () => {
  const at = await stage();
  const start = Promise.withResolvers<void>();
  at.engine.script.start = () => start.promise;
  await (await at.chat(streamed)).body?.cancel();
  await settle();
  expect([at.engine.cancels, at.engine.commits, at.clock.armed]).toEqual([1, 0, 0]);
  at.engine.script.start = async () => {};
  const release = holdModel(at);
  const response = await at.chat(streamed);
  await settle();
  await response.body?.cancel();
  release();
  await settle();
  expect([at.engine.cancels, at.engine.commits]).toEqual([1, 1]);
  await expectClean(at, 1);
});

test("the service waits for a stream when it shuts down", async () => {
  const at = await stage();
  const release = holdModel(at);
  const response = await at.chat(streamed);
  let drained = false;
  const drain = at.service.core.lifecycle.drain().then(() => {
    drained = true;
  });
  await settle();
  expect(drained).toBe(false);
  release();
  expect((await pieces(response)).at(-1)).toBe("data: [DONE]\n\n");
  await drain;
});
