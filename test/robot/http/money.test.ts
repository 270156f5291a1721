/** Money on the robot route: what is held, what is charged, what is told, and that nothing is charged for nothing. */
import { describe, expect, test } from "bun:test";
import { Fault } from "../../../src/engine/fault.ts";
import { Failure } from "../../../src/std/failure.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { observation, type Stage, stage } from "../stage.ts";
import { failure, settle } from "./outcome.ts";

/** 100 prompt tokens at 1,000 and 30 rows at 1,000,000 nano-dollars (stage.ts, fake-engine.ts). */
const COST = 30_100_000n;

async function money(at: Stage) {
  await settle();
  const account = await at.store.accounts.accountById("acct_1");
  if (!account || account instanceof StoreDown) throw new Error("no account");
  return { balance: account.credits - account.settled, held: account.held };
}

/** Leaves the account with exactly this amount. */
async function balance(at: Stage, amount: bigint): Promise<void> {
  const { balance: before } = await money(at);
  const back = { accountId: "acct_1", transferId: `t${amount}`, amount: amount - before, at: 0, month: 197_001 };
  await at.store.charges.credit(back);
}

async function told(response: Response) {
  const { headers } = response;
  return { ...(await failure(response)), retry: headers.get("x-should-retry"), after: headers.get("retry-after") };
}

describe("an inference", () => {
  test("holds its maximum cost while it runs and settles its real cost once", async () => {
    const at = await stage();
    await balance(at, COST);
    const { promise, resolve } = Promise.withResolvers<void>();
    const { run } = at.engine.script;
    at.engine.script.run = async (observed) => {
      await promise;
      const result = await run(observed);
      // Twenty of the tokens turn out to be kept from before.
      return result instanceof Failure ? result : { ...result, cachedTokens: 20 };
    };
    const body = observation({ observation_id: "o" });
    const response = at.chat(body);
    await settle();
    expect(await money(at)).toEqual({ balance: COST, held: COST });
    resolve();
    expect((await response).status).toBe(200);
    // 20 × 900 less.
    expect(await money(at)).toEqual({ balance: 18_000n, held: 0n });
    const replay = await at.chat(body);
    expect([replay.status, replay.headers.get("idempotent-replayed"), await money(at)]).toEqual([
      200,
      "true",
      { balance: 18_000n, held: 0n },
    ]);
  });

  test("that is billed whole although fewer rows were asked for", async () => {
    const at = await stage();
    await balance(at, COST);
    expect((await at.chat(observation({ action_horizon: 1 }))).status).toBe(200);
    expect(await money(at)).toEqual({ balance: 0n, held: 0n });
  });

  test("a description costs nothing, also without money", async () => {
    const at = await stage();
    await balance(at, 0n);
    expect((await at.chat(observation({ messages: [{ role: "user", content: "hello" }] }))).status).toBe(200);
    expect(await money(at)).toEqual({ balance: 0n, held: 0n });
  });
});

describe("what is told", () => {
  test("402 payment_required without payment method and credit, 402 insufficient_credit below the maximum cost; nothing runs", async () => {
    const at = await stage();
    const body = observation({ session_id: "s" });
    await balance(at, 0n);
    expect(await told(await at.chat(body))).toEqual({
      status: 402,
      code: "payment_required",
      param: undefined,
      retry: "false",
      after: null,
    });
    await balance(at, COST - 1n);
    expect(await told(await at.chat(body))).toMatchObject({ status: 402, code: "insufficient_credit", retry: "false" });
    expect([at.engine.observations.length, at.engine.framesHeld, await money(at)]).toEqual([
      0,
      0,
      { balance: COST - 1n, held: 0n },
    ]);
    await balance(at, COST);
    const first = await at.chat(body);
    expect([first.status, first.headers.get("x-session-step")]).toEqual([200, "0"]);
  });

  test("429 spend_limit_exceeded at the monthly limit, which is not to be retried; a new month begins anew", async () => {
    const at = await stage();
    await at.store.accounts.spendLimit({ accountId: "acct_1", limit: COST });
    expect((await at.chat(observation())).status).toBe(200);
    const response = await at.chat(observation());
    const { error } = (await response.clone().json()) as { error: { type: string } };
    expect([error.type, await told(response)]).toMatchObject([
      "billing_error",
      { status: 429, code: "spend_limit_exceeded", retry: "false" },
    ]);
    at.clock.advance(31 * 86_400_000);
    expect((await at.chat(observation())).status).toBe(200);
  });

  test("a bad image is told before a lack of money, a lack of money before a lack of capacity", async () => {
    const at = await stage({ sessionsMax: 1 });
    await at.chat(observation({ session_id: "a" }));
    await balance(at, 0n);
    at.engine.script.decode = async () => new Fault("bad_image", "no JPEG");
    const body = observation({ session_id: "b" });
    expect(await failure(await at.chat(body))).toMatchObject({ code: "invalid_image" });
    at.engine.script.decode = async () => undefined;
    expect(await failure(await at.chat(body))).toMatchObject({ code: "payment_required" });
    await balance(at, COST);
    expect(await failure(await at.chat(body))).toMatchObject({ code: "no_replica_free" });
    expect(await money(at)).toEqual({ balance: COST, held: 0n });
  });

  test("billing down is 503 billing_unavailable, metering down 503 metering_unavailable, both with Retry-After and free", async () => {
    const at = await stage();
    const before = await money(at);
    at.store.beforeHold = async () => new StoreDown("gone");
    expect(await told(await at.chat(observation()))).toMatchObject({
      status: 503,
      code: "billing_unavailable",
      after: "1",
    });
    at.store.beforeHold = async () => undefined;
    at.store.beforeKeep = async () => new StoreDown("gone");
    expect(await told(await at.chat(observation()))).toMatchObject({
      status: 503,
      code: "metering_unavailable",
      after: "1",
    });
    expect([await money(at), at.engine.commits]).toEqual([before, 0]);
  });
});

describe("nothing is charged for", () => {
  test("an inference that fails, an image that is none, a client that leaves before the start, a chunk that is too late", async () => {
    const at = await stage();
    const before = await money(at);
    const { run, decode, start } = at.engine.script;
    at.engine.script.run = async () => new Fault("model_failed", "broken");
    await at.chat(observation());
    at.engine.script.run = run;
    at.engine.script.decode = async () => new Fault("bad_image", "no JPEG");
    await at.chat(observation());
    at.engine.script.decode = decode;
    at.engine.script.start = () => new Promise(() => {});
    const client = new AbortController();
    const left = at.chat(observation(), { signal: client.signal });
    await settle();
    client.abort();
    await left.catch(() => {});
    const late = at.chat(observation());
    await settle();
    at.clock.advance(10_000);
    expect(await failure(await late)).toMatchObject({ code: "engine_unavailable" });
    at.engine.script.start = start;
    expect([await money(at), at.store.kept.length]).toEqual([before, 0]);
  });

  test("a result whose money was given back meanwhile: it is withheld", async () => {
    const at = await stage();
    const before = await money(at);
    at.store.beforeKeep = async () => {
      await at.store.charges.holdsExpire({ before: Number.MAX_SAFE_INTEGER });
      return undefined;
    };
    expect(await failure(await at.chat(observation({ session_id: "s" })))).toMatchObject({
      code: "metering_unavailable",
    });
    expect(await money(at)).toEqual(before);
    at.store.beforeKeep = async () => undefined;
    const next = await at.chat(observation({ session_id: "s" }));
    expect(next.headers.get("x-session-step")).toBe("0");
  });
});

test("where nobody knows whether a record is durable, a repeat of its observation_id finds out, and the session is over", async () => {
  const at = await stage();
  const body = observation({ session_id: "s", observation_id: "o", expected_step: 0 });
  const { settleChunk } = at.store.robot;
  // The record is durable, its acknowledgement is lost.
  at.store.robot.settleChunk = async (chunk) => {
    await settleChunk(chunk);
    return new StoreDown("connection lost", true);
  };
  expect(await failure(await at.chat(body))).toEqual({
    status: 503,
    code: "observation_outcome_unknown",
    param: "observation_id",
  });
  at.store.robot.settleChunk = settleChunk;
  const { balance: left, held } = await money(at);
  const replay = await at.chat(body);
  expect([replay.status, replay.headers.get("idempotent-replayed"), held]).toEqual([200, "true", 0n]);
  expect(await money(at)).toEqual({ balance: left, held: 0n });
  const next = observation({ session_id: "s", observation_id: "p", expected_step: 1 });
  expect(await failure(await at.chat(next))).toMatchObject({ code: "session_expired" });
});
