/** Exactly once: `observation_id`, and what is durable before an answer leaves (contract section 2). */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/engine/fault.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { imagePart, imageUrl, jpeg, observation, type Stage, stage, textPart, withContent } from "../stage.ts";
import { expectClean, failure, holdModel, session, settle } from "./outcome.ts";

const asked = { ...session, observation_id: "o.1" };

async function replayed(response: Response) {
  const { headers } = response;
  const text = await response.text();
  return [text, headers.get("x-generation-id"), headers.get("x-session-step"), headers.get("idempotent-replayed")];
}

test("reusing it with an identical body replays the original result with no new execution", async () => {
  const at = await stage();
  const [text = null, generation = null, step = null] = await replayed(await at.chat(asked));
  // The same values in another order, with a null field.
  const same = Object.fromEntries(Object.entries({ seed: null, ...asked }).reverse());
  at.clock.advance(5_000);
  expect(await replayed(await at.chat(same))).toEqual([text, generation, step, "true"]);
  expect([at.engine.observations.length, at.engine.framesPut, step]).toEqual([1, 3, "0"]);
  await expectClean(at, 1);
});

test("the replay check comes before the session checks: an old step replays after the session has moved on", async () => {
  const at = await stage();
  const [text] = await replayed(await at.chat({ ...asked, expected_step: 0 }));
  await at.chat(session);
  await at.chat(session);
  expect((await replayed(await at.chat({ ...asked, expected_step: 0 })))[0]).toBe(text);
  at.clock.advance(60_000);
  expect((await replayed(await at.chat({ ...asked, expected_step: 0 })))[0]).toBe(text);
  expect(await failure(await at.chat(session))).toMatchObject({ code: "session_expired" });
});

test("other content: 409 idempotency_conflict with the field, and nothing runs", async () => {
  const at = await stage();
  await at.chat(asked);
  const robot_state = { joint_position: Array(12).fill(0.2), gripper_position: [0, 1] };
  const brighter = withContent([textPart(), imagePart(), imagePart(imageUrl(jpeg(65))), imagePart()]);
  const { messages } = brighter;
  for (const changes of [
    { seed: 1 },
    { action_horizon: 29 },
    { num_inference_steps: 1 },
    { expected_step: 0 },
    { robot_state },
    { messages },
  ]) {
    expect(await failure(await at.chat({ ...asked, ...changes }))).toEqual({
      status: 409,
      code: "idempotency_conflict",
      param: "observation_id",
    });
  }
  expect(at.engine.observations.length).toBe(1);
  await expectClean(at, 1);
});

test("the same observation is replayed in any form: stream, unknown fields, and defaults that are spelt out", async () => {
  const at = await stage();
  const [text] = await replayed(await at.chat(asked));
  for (const changes of [{ extra: {} }, { action_horizon: 30 }, { seed: 0 }, { handoff: false }]) {
    expect((await replayed(await at.chat({ ...asked, ...changes })))[0]).toBe(text);
  }
  const streamed = await at.chat({ ...asked, stream: true });
  expect([streamed.status, streamed.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  const content = (JSON.parse(String(text)) as { choices: [{ message: { content: string } }] }).choices[0].message
    .content;
  expect(await streamed.text()).toContain(JSON.stringify(content));
  expect(at.engine.observations.length).toBe(1);
});

test("still running: 409 observation_outcome_unknown, in place of session_busy", async () => {
  const at = await stage();
  const release = holdModel(at);
  const first = at.chat(asked);
  await settle();
  expect(await failure(await at.chat(asked))).toEqual({
    status: 409,
    code: "observation_outcome_unknown",
    param: "observation_id",
  });
  expect(await failure(await at.chat({ ...asked, observation_id: "o.2" }))).toMatchObject({ code: "session_busy" });
  release();
  const [text] = await replayed(await first);
  expect((await replayed(await at.chat(asked)))[0]).toBe(text);
});

test("a failed inference frees the id: it may be used again, with other content too", async () => {
  const at = await stage();
  at.engine.script.run = async () => new Fault("model_failed", "no");
  expect((await at.chat(asked)).status).toBe(500);
  at.engine.mend();
  expect(await failure(await at.chat({ ...asked, messages: [] }))).toMatchObject({ code: "messages_missing" });
  expect((await at.chat({ ...asked, seed: 5 })).status).toBe(200);
  expect([at.engine.observations.length, at.service.robot.replays.size]).toEqual([2, 0]);
});

test("known, result gone: 503 observation_outcome_unknown; its marker stays for 24 hours after the session", async () => {
  const at = await stage();
  await at.chat(asked);
  const { clock, store } = at;
  const seconds = () => Math.floor(clock.unixMs() / 1000);
  clock.advance(60_000 + 10 * 60_000);
  await store.robot.chunksForget({ repliesBefore: seconds() - 660, recordsBefore: 0 });
  expect((await at.chat(asked)).status).toBe(200);
  await store.robot.chunksForget({ repliesBefore: seconds() - 659, recordsBefore: 0 });
  expect(await failure(await at.chat(asked))).toEqual({
    status: 503,
    code: "observation_outcome_unknown",
    param: "observation_id",
  });
  expect(at.engine.observations.length).toBe(1);
});

test("without session_id the id is scoped to account and model", async () => {
  const at = await stage();
  const alone = observation({ observation_id: "o.1" });
  const [text, , step] = await replayed(await at.chat(alone));
  expect([await replayed(await at.chat(alone)), step]).toEqual([[text, expect.any(String), null, "true"], null]);
  expect((await at.chat(asked)).headers.get("idempotent-replayed")).toBeNull();
  expect(at.engine.observations.length).toBe(2);
});

test("a streamed answer is replayed as a stream, byte for byte", async () => {
  const at = await stage();
  const streamed = { ...asked, stream: true };
  const first = await (await at.chat(streamed)).text();
  const again = await at.chat(streamed);
  expect(again.headers.get("content-type")).toStartWith("text/event-stream");
  expect(await replayed(again)).toEqual([first, expect.any(String), "0", "true"]);
});

/** A store whose commits wait for the test. */
function holdCommits(at: Stage): (outcome?: StoreDown) => void {
  const gate = Promise.withResolvers<StoreDown | undefined>();
  at.store.beforeKeep = () => gate.promise;
  return (outcome) => {
    at.store.beforeKeep = async () => undefined;
    gate.resolve(outcome);
  };
}

for (const stream of [false, true]) {
  test(`no byte of the content leaves before the commit${stream ? ", streamed" : ""}`, async () => {
    const at = await stage();
    const commit = holdCommits(at);
    let said = "";
    const pending = at.chat({ ...asked, stream }).then(async (response) => {
      for await (const piece of response.body ?? []) said += new TextDecoder().decode(piece);
    });
    await settle();
    at.clock.advance(300);
    await settle();
    expect(said).toBe(stream ? ": processing\n\n".repeat(2) : "");
    expect([at.engine.commits, at.store.kept.length]).toEqual([0, 0]);
    commit();
    await pending;
    expect(said).toContain("actions");
    expect([at.engine.commits, at.store.kept.length]).toEqual([1, 1]);
  });
}

test("a failed n-th commit moves nothing, for every n of an episode, and the retry is like the first try", async () => {
  const steps = 4;
  const body = (step: number) => ({ ...session, observation_id: `o${step}` });
  const clean = await stage();
  const expected: string[] = [];
  for (let step = 0; step < steps; step += 1) expected.push(await actions(await clean.chat(body(step))));
  for (let bad = 0; bad < steps; bad += 1) {
    const at = await stage();
    const got: string[] = [];
    for (let step = 0; step < steps; step += 1) {
      if (step === bad) {
        at.store.beforeKeep = async () => new StoreDown("disk full");
        const response = await at.chat(body(step));
        expect(response.headers.get("retry-after")).toBe("1");
        expect(await failure(response)).toMatchObject({ status: 503, code: "metering_unavailable" });
        at.store.beforeKeep = async () => undefined;
      }
      const response = await at.chat({ ...body(step), expected_step: step });
      got.push(await actions(response));
    }
    expect(got).toEqual(expected);
    expect([at.engine.aborts, at.engine.commits, at.engine.runsHeld]).toEqual([1, steps, 0]);
    expect(at.logLines.join()).toContain("disk full");
  }
});

async function actions(response: Response): Promise<string> {
  const { choices } = (await response.json()) as { choices: [{ message: { content: string } }] };
  return choices[0].message.content;
}

test("a commit that takes longer than the chunk may: the outcome is unknown, and the same id gets the answer", async () => {
  const at = await stage();
  const commit = holdCommits(at);
  const pending = at.chat(asked);
  await settle();
  at.clock.advance(10_000);
  const unknown = await pending;
  expect(unknown.headers.get("retry-after")).toBe("1");
  expect(await failure(unknown)).toEqual({
    status: 503,
    code: "observation_outcome_unknown",
    param: "observation_id",
  });
  expect(await failure(await at.chat(asked))).toMatchObject({ status: 409, code: "observation_outcome_unknown" });
  commit();
  await settle();
  const [text, , step, again] = await replayed(await at.chat(asked));
  expect([String(text).includes("actions"), step, again]).toEqual([true, "0", "true"]);
  expect(at.engine.observations.length).toBe(1);
  await expectClean(at, 1);
});

test("the service ends during a commit: the outcome is unknown, because the answer may become durable", async () => {
  for (const body of [asked, session]) {
    const at = await stage();
    const commit = holdCommits(at);
    const pending = at.chat(body);
    await settle();
    at.service.core.lifecycle.cut();
    expect(await failure(await pending)).toMatchObject({ status: 503, code: "observation_outcome_unknown" });
    commit();
    await settle();
    expect([at.store.kept.length, at.engine.commits, at.engine.runsHeld]).toEqual([1, 1, 0]);
  }
});

test("a client that leaves after the start: the answer is kept under its observation_id", async () => {
  const at = await stage();
  const release = holdModel(at);
  const client = new AbortController();
  const pending = at.chat(asked, { signal: client.signal });
  await settle();
  client.abort();
  release();
  await pending;
  const [text, , , again] = await replayed(await at.chat(asked));
  expect([String(text).includes("actions"), again, at.engine.observations.length]).toEqual([true, "true", 1]);
});

test("a client that leaves while its inference waits takes it back: the model never sees it, the id is free", async () => {
  const at = await stage();
  const start = Promise.withResolvers<void>();
  at.engine.script.start = () => start.promise;
  const client = new AbortController();
  const pending = at.chat(asked, { signal: client.signal });
  await settle();
  client.abort();
  await pending;
  expect([at.engine.cancels, at.engine.commits, at.store.kept.length]).toEqual([1, 0, 0]);
  at.engine.script.start = async () => {};
  expect((await at.chat({ ...asked, seed: 3 })).status).toBe(200);
  await expectClean(at, 1);
});

test("the digest of a body is computed only where an id asks for it", async () => {
  const at = await stage();
  await at.chat(session);
  expect(at.store.kept[0]?.observation).toBeUndefined();
});
