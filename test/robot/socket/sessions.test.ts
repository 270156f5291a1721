/** Sessions of sockets: one table with HTTP, resuming, closing, and what a connection leaves behind. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { failure, settle } from "../http/outcome.ts";
import { MODEL, observation, STATEFUL, type Stage, stage } from "../stage.ts";
import { gate, held, ids, money, NOTHING, Peer, peer } from "./peer.ts";

describe("one session table with HTTP", () => {
  test("an episode begun over HTTP goes on on a socket, and the other way round", async () => {
    const at = await stage();
    expect((await at.chat(observation({ session_id: "s" }))).status).toBe(200);
    const one = new Peer(at);
    expect(await one.open({ session_id: "s" })).toMatchObject({ type: "session.opened", step: 1 });
    expect((await one.act()).step).toBe(1);
    one.episode.dropped();
    const response = await at.chat(observation({ session_id: "s", expected_step: 2 }));
    expect([response.status, response.headers.get("x-session-step")]).toEqual([200, "2"]);
  });

  test("a session is recorded when it opens: without a chunk it can be resumed for 60 s, and once closed it is 410", async () => {
    const at = await stage();
    const one = new Peer(at);
    await one.open({ session_id: "s", model: STATEFUL });
    one.episode.dropped();
    const again = new Peer(at);
    expect(await again.open({ session_id: "s", model: STATEFUL })).toMatchObject({ type: "session.opened", step: 0 });
    await again.say({ type: "session.close" });
    expect(at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount).toBe(4);
    const closed = await at.chat(observation({ model: STATEFUL, session_id: "s" }));
    expect(await failure(closed)).toMatchObject({ status: 410, code: "session_expired" });
  });

  test("metering_unavailable, 1008: the record of a new session cannot be kept; its slot is free again", async () => {
    const at = await stage();
    const one = new Peer(at);
    at.store.robot.sessionOpen = async () => new StoreDown("switched off by the test");
    expect(await one.open({ session_id: "s", model: STATEFUL })).toMatchObject({ code: "metering_unavailable" });
    expect([one.closed, at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount]).toEqual([1008, 4]);
  });

  test("a dropped socket's chunk ends first: then the next socket resumes behind it, within 60 s", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    const next = gate(one.at);
    await one.act();
    one.episode.dropped();
    const again = new Peer(one.at);
    await again.say({ type: "session.open", model: MODEL, instruction: "fold the towel", session_id: "s" });
    expect(again.heard).toEqual([]);
    await next();
    expect(again.last).toMatchObject({ type: "session.opened", step: 1 });
    again.episode.dropped();
    one.at.clock.advance(LIMITS.sessionIdleMs - 1);
    const third = new Peer(one.at);
    expect(await third.open({ session_id: "s" })).toMatchObject({ type: "session.opened", step: 1 });
  });

  test("DELETE of a session that a socket holds: the socket gets session_expired, 1008", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    await one.act();
    const path = `/v1/robot/sessions/s?model=${encodeURIComponent(MODEL)}`;
    await one.at.send(path, { method: "DELETE", headers: { authorization: `Bearer ${one.at.key}` } });
    await settle();
    expect([one.last.code, one.closed]).toEqual(["session_expired", 1008]);
    expect(await failure(await one.at.chat(observation({ session_id: "s" })))).toMatchObject({ status: 410 });
  });

  test("DELETE while a chunk runs: the chunk is answered first, then session_expired, 1008; what waits never runs", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    const next = gate(one.at);
    for (const id of ["o", "queued"]) one.sayObserve({ observation_id: id });
    await settle();
    const path = `/v1/robot/sessions/s?model=${encodeURIComponent(MODEL)}`;
    await one.at.send(path, { method: "DELETE", headers: { authorization: `Bearer ${one.at.key}` } });
    await next();
    expect(one.heard.slice(1)).toMatchObject([
      { type: "action_chunk", observation_id: "o" },
      { code: "session_expired", closing: true },
    ]);
    expect([one.closed, one.at.engine.observations.length, held(one.at)]).toEqual([1008, 1, NOTHING]);
  });

  test("session.close waits for what was asked before it, ignores what comes after, and frees the slot at once", async () => {
    const at = await stage();
    const one = new Peer(at);
    await one.open({ model: STATEFUL });
    const next = gate(at);
    await one.act({ observation_id: "a" });
    one.frames();
    await one.say({ type: "session.close" });
    await one.observe({ observation_id: "b" });
    expect(one.heard).toHaveLength(1);
    await next();
    expect(ids(one).slice(1)).toEqual(["a", undefined]);
    expect([one.last, one.closed]).toEqual([{ type: "session.closed", reason: "session_close" }, 1000]);
    expect([at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount, held(at)]).toEqual([4, NOTHING]);
  });
});

/** What an episode leaves in the ledger, without the ids that differ each time. */
async function ledger(at: Stage) {
  const kept = at.store.kept.map(({ usage, cost, session, observation }) => {
    const { sessionId, observationId, step } = observation ?? {};
    return { usage, cost, session, observation: { sessionId, observationId, step } };
  });
  const { entries, sum } = at.store.report();
  const days = await at.store.charges.usageDays({ accountId: "acct_1", fromDay: 0 });
  return { kept, entries, sum, days, ...(await money(at)) };
}

/** The second chunk fails once; what a chunk costs grows with the episode. */
function priced({ engine }: Stage): void {
  let failed = false;
  engine.script.run = async (run) => {
    if (run.step === 1 && !failed) {
      failed = true;
      return engine.fault("no");
    }
    return { ...engine.chunk(run), cachedTokens: 10 * run.step };
  };
}

test("the same episode, with a failure, a refusal, a repeat and few rows, leaves the same ledger on a socket and over HTTP", async () => {
  const [socket, http] = [await stage(), await stage()];
  for (const at of [socket, http]) priced(at);
  const episode = [
    { observation_id: "o0" },
    { observation_id: "o1" },
    { observation_id: "o1" },
    { observation_id: "o2", action_horizon: 2 },
    { observation_id: "o2", action_horizon: 2 },
    { observation_id: "o3", expected_step: 7 },
    { expected_step: 3 },
  ];
  const told = { socket: [] as unknown[], http: [] as unknown[] };
  let one: Peer | undefined;
  for (const fields of episode) {
    if (one === undefined || one.ended) {
      one = new Peer(socket);
      await one.open({ session_id: "s" });
    }
    const { code, step, replayed = false } = await one.act(fields);
    told.socket.push(code ?? [step, replayed]);
    const response = await http.chat(observation({ session_id: "s", ...fields }));
    const { headers } = response;
    const answer = [Number(headers.get("x-session-step")), headers.get("idempotent-replayed") === "true"];
    told.http.push(response.ok ? answer : (await failure(response)).code);
  }
  expect(told.socket).toEqual([
    [0, false],
    "model_failure",
    [1, false],
    [2, false],
    [2, true],
    "session_step_conflict",
    [3, false],
  ]);
  expect(told.http).toEqual(told.socket);
  const left = await ledger(socket);
  expect(left).toMatchObject({ sum: 0n, held: 0n, days: [{ charges: 4, completionTokens: 120, cachedTokens: 60 }] });
  expect(await ledger(http)).toEqual(left);
});
