/** `deadline_ms` of an observation on a socket. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { settle } from "../http/outcome.ts";
import { held, money, NOTHING, Peer, peer } from "./peer.ts";

test("one that passes while the model is at it ends the connection, 1011, free of charge; the session goes on, and a repeat runs", async () => {
  const one = await peer();
  await one.open({ session_id: "s" });
  one.at.engine.script.run = () => new Promise(() => {});
  one.sayObserve({ observation_id: "o", deadline_ms: 300 });
  one.sayObserve({ observation_id: "p" });
  await settle();
  one.at.clock.advance(300);
  await settle();
  expect(one.last).toEqual({
    type: "error",
    code: "engine_unavailable",
    message: expect.stringContaining("its deadline_ms of 300"),
    closing: true,
    observation_id: "o",
    retry_after: 1,
    dropped: 1,
  });
  expect([one.closed, one.at.engine.cancels, held(one.at)]).toEqual([1011, 1, NOTHING]);
  expect(await money(one.at)).toEqual({ paid: 0n, held: 0n });
  one.at.engine.mend();
  const next = new Peer(one.at);
  expect(await next.open({ session_id: "s" })).toMatchObject({ type: "session.opened", step: 0 });
  const chunk = await next.act({ observation_id: "o", deadline_ms: 600 });
  expect(chunk).toMatchObject({ type: "action_chunk", observation_id: "o", step: 0 });
  expect(chunk.replayed).toBeUndefined();
});

test("it counts from the observation's arrival, also while the one before it is answered: that one's answer comes first", async () => {
  const one = await peer();
  await one.open({ session_id: "s" });
  const model = Promise.withResolvers<void>();
  const { engine } = one.at;
  engine.script.run = async (run) => {
    await model.promise;
    return engine.chunk(run);
  };
  one.sayObserve({ observation_id: "o" });
  one.sayObserve({ observation_id: "p", deadline_ms: 300 });
  await settle();
  one.at.clock.advance(300);
  await settle();
  expect(one.heard).toHaveLength(1);
  model.resolve();
  await settle();
  expect(one.heard.slice(1)).toMatchObject([
    { type: "action_chunk", observation_id: "o" },
    { type: "error", code: "engine_unavailable", observation_id: "p", closing: true },
  ]);
  expect([engine.observations.length, engine.cancels, held(one.at)]).toEqual([1, 0, NOTHING]);
});

test("it is each observation's own: session.open has none", async () => {
  const one = await peer();
  expect(await one.open({ session_id: "s", deadline_ms: "ignored" })).toMatchObject({ type: "session.opened" });
  expect(await one.act({ deadline_ms: LIMITS.deadlineMs.max })).toMatchObject({ type: "action_chunk" });
  expect(await one.act({ deadline_ms: null })).toMatchObject({ type: "action_chunk" });
});
