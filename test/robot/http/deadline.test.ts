/** `deadline_ms` over HTTP: after it the chunk is neither made nor charged, wherever the observation stands then. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { runUntilCancelled } from "../../fake-engine.ts";
import { money } from "../socket/peer.ts";
import { MODEL, type Stage, stage } from "../stage.ts";
import { expectClean, failure, session, settle } from "./outcome.ts";

const FREE = { paid: 0n, held: 0n };
const due = { ...session, deadline_ms: 300 };

/** The answer is the deadline's, with a time to come back. */
async function expectMissed(pending: Promise<Response>): Promise<void> {
  const response = await pending;
  const { error } = (await response.clone().json()) as { error: { message: string } };
  expect([response.headers.get("retry-after"), error.message]).toEqual([
    "1",
    "the chunk was not ready within its deadline_ms of 300 and was taken back; nothing was charged: ask with a fresh observation, or with a longer deadline_ms",
  ]);
  expect(await failure(response)).toEqual({ status: 503, code: "engine_unavailable", param: undefined });
}

/** Records become durable once the result is called. */
function slowCommit(at: Stage): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  at.store.beforeKeep = async () => {
    await promise;
    return undefined;
  };
  return resolve;
}

/** Advances to one millisecond before the deadline, then to it. */
async function pass(at: Stage, pending: Promise<Response>): Promise<void> {
  await settle();
  at.clock.advance(299);
  await settle();
  expect(Bun.peek.status(pending)).toBe("pending");
  at.clock.advance(1);
  await expectMissed(pending);
}

describe("an observation whose deadline passes is taken back, free of charge", () => {
  test("while it waits for permits", async () => {
    const at = await stage();
    const share = Math.floor(LIMITS.accountFramesMax / 3);
    const { admission } = at.service.robot;
    const permits = Array.from({ length: share }, () => admission.take("acct_1", MODEL, 3));
    await pass(at, at.chat(due));
    expect([admission.waiting, at.engine.framesPut]).toEqual([0, 0]);
    for (const permit of permits) if ("release" in permit) permit.release();
    await expectClean(at, 0);
  });

  test("while its frames are decoded", async () => {
    const at = await stage();
    at.engine.script.decode = () => new Promise(() => {});
    await pass(at, at.chat(due));
    expect(at.engine.observations).toEqual([]);
    await expectClean(at, 0);
  });

  test("while its inference waits for the model: it is cancelled", async () => {
    const at = await stage();
    at.engine.script.start = () => new Promise(() => {});
    await pass(at, at.chat(due));
    expect([at.engine.cancels, await money(at)]).toEqual([1, FREE]);
    await expectClean(at, 0);
  });

  test("while the model is at it: the inference is cancelled, and the step and the id are free for a repeat", async () => {
    const at = await stage();
    at.engine.script.run = runUntilCancelled;
    await pass(at, at.chat({ ...due, observation_id: "o" }));
    at.engine.mend();
    await settle();
    expect([at.engine.cancels, at.engine.aborts, at.store.kept, await money(at)]).toEqual([1, 1, [], FREE]);
    const again = await at.chat({ ...session, observation_id: "o", deadline_ms: 500 });
    expect([again.status, again.headers.get("idempotent-replayed"), again.headers.get("x-session-step")]).toEqual([
      200,
      null,
      "0",
    ]);
    await expectClean(at, 1);
  });

  test("as a stream, it ends with an error event", async () => {
    const at = await stage();
    at.engine.script.run = runUntilCancelled;
    const response = await at.chat({ ...due, stream: true });
    const text = response.text();
    await settle();
    at.clock.advance(300);
    expect(await text).toContain('"code":"engine_unavailable"');
    at.engine.mend();
    expect(await money(at)).toEqual(FREE);
    await expectClean(at, 0);
  });
});

test("the time counts from the arrival of the request's last byte: one that has passed before the checks runs nothing", async () => {
  const at = await stage();
  const { observation: recorded } = at.store.robot;
  at.store.robot.observation = async (id) => {
    at.clock.advance(300);
    return await recorded(id);
  };
  await expectMissed(at.chat({ ...due, observation_id: "o" }));
  expect([at.engine.framesPut, at.engine.observations]).toEqual([0, []]);
  at.store.robot.observation = recorded;
  await expectClean(at, 0);
});

test("a chunk whose record is being made durable is answered, charged once, and kept for a repeat", async () => {
  const at = await stage();
  const commit = slowCommit(at);
  const pending = at.chat({ ...due, observation_id: "o" });
  await settle();
  expect(at.engine.observations.length).toBe(1);
  at.clock.advance(5_000);
  commit();
  expect((await pending).status).toBe(200);
  const { paid } = await money(at);
  const again = await at.chat({ ...due, observation_id: "o" });
  expect([again.headers.get("idempotent-replayed"), await money(at)]).toEqual(["true", { paid, held: 0n }]);
  await expectClean(at, 1);
});

test("the service's own time goes on while the record is made durable: then nobody knows", async () => {
  const at = await stage();
  const commit = slowCommit(at);
  const pending = at.chat(due);
  await settle();
  at.clock.advance(9_999);
  await settle();
  at.clock.advance(1);
  expect(await failure(await pending)).toMatchObject({ status: 503, code: "observation_outcome_unknown" });
  commit();
  await settle();
  await expectClean(at, 1);
});

test("a chunk that is ready in time is answered as without one, and the digest of its observation is the same", async () => {
  const at = await stage();
  const first = await at.chat({ ...due, observation_id: "o" });
  expect(first.status).toBe(200);
  for (const deadline_ms of [undefined, 1, 240_000]) {
    const again = await at.chat({ ...session, observation_id: "o", deadline_ms });
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  }
  await expectClean(at, 1);
});

test("a time longer than the service's own changes nothing", async () => {
  const at = await stage();
  at.engine.script.run = runUntilCancelled;
  const pending = at.chat({ ...session, deadline_ms: 240_000 });
  await settle();
  at.clock.advance(10_000);
  const { error } = (await (await pending).json()) as { error: { message: string } };
  expect(error.message).toContain("not ready within 10 s");
  await expectClean(at, 0);
});

test("what was decoded for a deadline that was missed counts as unpaid work of the account", async () => {
  const at = await stage({ unpaidSeconds: 5 });
  at.engine.decodeMs = 2_000;
  at.engine.script.run = runUntilCancelled;
  await pass(at, at.chat(due));
  at.engine.mend();
  await settle();
  expect(await failure(await at.chat(session))).toMatchObject({ status: 429, code: "rate_limited" });
});

test("what the model worked for a deadline that was missed counts as unpaid work; that of an answer does not", async () => {
  const at = await stage({ unpaidSeconds: 5 });
  at.engine.modelMs = 6_000;
  expect((await at.chat(session)).status).toBe(200);
  await settle();
  at.engine.script.run = runUntilCancelled;
  await pass(at, at.chat(due));
  at.engine.mend();
  await settle();
  expect(await failure(await at.chat(session))).toMatchObject({ status: 429, code: "rate_limited" });
});
