/** A session whose connection has gone silent, and another connection of the same key that asks for it (contract section 3). */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { present } from "../../../src/std/assert.ts";
import { memoryOf } from "../../engine/memory.ts";
import { failure, settle } from "../http/outcome.ts";
import { addKey, observation, STATEFUL, type Stage, stage } from "../stage.ts";
import { gate, type Heard, held, ids, money, NOTHING, Peer } from "./peer.ts";

/** A connection that holds session `s` after `chunks` chunks, and whose client answers no ping from then on. */
async function holding(at: Stage, chunks: number, fields: object = {}): Promise<Peer> {
  const one = new Peer(at);
  await one.open({ session_id: "s", ...fields });
  for (let step = 0; step < chunks; step += 1) expect((await one.act({ observation_id: `${step}` })).step).toBe(step);
  one.wire.answer = () => {};
  return one;
}

/** Another connection that has asked for session `s`. */
async function asking(at: Stage, fields: object = {}): Promise<Peer> {
  const next = new Peer(at);
  next.sayOpen({ session_id: "s", ...fields });
  await settle();
  return next;
}

async function pass(at: Stage, ms: number): Promise<void> {
  at.clock.advance(ms);
  await settle();
}

const TAKEN = { type: "error", code: "session_busy", closing: true };

describe("a holder that answers no ping", () => {
  test("loses the session after 2 s, not before; the next one goes on at its step with its memory", async () => {
    const at = await stage();
    const one = await holding(at, 1, { model: STATEFUL });
    const next = await asking(at, { model: STATEFUL });
    expect([one.wire.pings, next.heard]).toEqual([1, []]);
    await pass(at, LIMITS.socketAnswerMs - 1);
    expect([one.ended, next.heard]).toEqual([false, []]);
    await pass(at, 1);
    expect(next.last).toMatchObject({ type: "session.opened", step: 1, next_frames_per_camera: 4 });
    expect([one.last, one.closed]).toMatchObject([TAKEN, 1008]);
    expect(one.last.message).toContain("taken this session over");
    next.frames([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    await next.observe({ expected_step: 1 });
    expect(next.last).toMatchObject({ type: "action_chunk", step: 1 });
    const model = present(at.service.robot.catalog.models.get(STATEFUL)?.model, "a loaded model");
    const slot = at.engine.observations.at(-1)?.slot ?? -1;
    expect([at.engine.observations.map(({ slot }) => slot), memoryOf(model, slot).frames]).toEqual([[slot, slot], 2]);
    expect(held(at)).toEqual(NOTHING);
  });

  test("its chunk that runs is finished, charged and kept under its id, what it had queued never runs; the next one waits", async () => {
    const at = await stage();
    const one = await holding(at, 1);
    const go = gate(at);
    one.sayObserve({ observation_id: "1" });
    one.sayObserve({ observation_id: "2" });
    await settle();
    const next = await asking(at);
    await pass(at, LIMITS.socketAnswerMs);
    expect([one.ended, next.heard]).toEqual([true, []]);
    await go();
    expect(next.last).toMatchObject({ type: "session.opened", step: 2 });
    expect(await next.act({ observation_id: "1" })).toMatchObject({ step: 1, replayed: true });
    const { paid } = await money(at);
    at.engine.script.run = async (run) => at.engine.chunk(run);
    expect(await next.act({ observation_id: "2" })).toMatchObject({ step: 2, observation_id: "2" });
    expect([at.engine.observations.map(({ step }) => step), ids(one)]).toEqual([
      [0, 1, 2],
      [undefined, "0", undefined],
    ]);
    // Two chunks were paid for when the third began.
    expect((await money(at)).paid).toBe((paid * 3n) / 2n);
    expect(held(at)).toEqual(NOTHING);
  });

  test("a chunk that the model has not started is taken back: the next one gets its step", async () => {
    const at = await stage();
    const one = await holding(at, 1);
    at.engine.script.start = () => new Promise(() => {});
    one.sayObserve({ observation_id: "1" });
    await settle();
    const next = await asking(at);
    await pass(at, LIMITS.socketAnswerMs);
    expect(next.last).toMatchObject({ type: "session.opened", step: 1 });
    at.engine.script.start = async () => {};
    expect(await next.act({ observation_id: "1" })).toMatchObject({ step: 1 });
    expect([at.engine.cancels, at.engine.commits, held(at)]).toEqual([1, 2, NOTHING]);
  });

  test("one of two that ask for it gets it", async () => {
    const at = await stage();
    await holding(at, 1);
    const both = [new Peer(at), new Peer(at)];
    for (const next of both) next.sayOpen({ session_id: "s" });
    await settle();
    await pass(at, LIMITS.socketAnswerMs);
    // The second one asked the new holder, which is there.
    expect(both.map(({ heard }) => heard.map((message) => (message as Heard).type))).toEqual([
      ["session.opened"],
      ["error"],
    ]);
    expect([both[1]?.last, both[0]?.ended, both[0]?.wire.pings]).toMatchObject([TAKEN, false, 1]);
  });

  test("when its connection ends while it is asked, the next one need not wait on", async () => {
    const at = await stage();
    const one = await holding(at, 1);
    const next = await asking(at);
    one.episode.dropped();
    await settle();
    expect(next.last).toMatchObject({ type: "session.opened", step: 1 });
    expect(at.clock.armed).toBe(1); // The close of the first one.
  });

  test("one that asks and leaves takes nothing", async () => {
    const at = await stage();
    const one = await holding(at, 1);
    const next = await asking(at);
    next.episode.dropped();
    await pass(at, LIMITS.socketAnswerMs);
    expect([one.ended, (await one.act({ expected_step: 1 })).type]).toEqual([false, "action_chunk"]);
  });
});

describe("a holder that is there keeps the session", () => {
  for (const [what, sign] of [
    ["a pong", (one: Peer) => one.episode.heard()],
    ["a frame", (one: Peer) => one.frames([0])],
    ["a text", (one: Peer) => one.episode.receive("{}")],
  ] as const) {
    test(`${what} is an answer: the second one gets session_busy at once`, async () => {
      const at = await stage();
      const one = await holding(at, 1);
      const next = await asking(at);
      at.clock.advance(LIMITS.socketAnswerMs - 1);
      sign(one);
      await settle();
      expect([next.last, next.closed, one.ended]).toMatchObject([TAKEN, 1008, false]);
      expect(at.clock.armed).toBe(1); // The close of the second one.
    });
  }

  test("another key is refused at once, and nobody is asked; so is a request over HTTP", async () => {
    const at = await stage();
    const one = await holding(at, 1);
    const next = new Peer(at, await addKey(at.store, "acct_1"));
    expect(await next.open({ session_id: "s" })).toMatchObject(TAKEN);
    const overHttp = await failure(await at.chat(observation({ session_id: "s" })));
    expect([overHttp.code, one.wire.pings, one.ended]).toEqual(["session_busy", 0, false]);
  });
});
