/** Messages that wait while a session is being opened: what they cost the event loop and the account, and their order. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { Backlog } from "../../../src/robot/socket/queues.ts";
import { settle } from "../http/outcome.ts";
import { jointState, type Stage, stage } from "../stage.ts";
import { gate, type Heard, held, ids, NOTHING, Peer, peer } from "./peer.ts";

/** Holds the account's `session.open` back until it is called. */
function slowOpening(at: Stage): () => Promise<void> {
  const { affords } = at.store.charges;
  const opened = Promise.withResolvers<void>();
  at.store.charges.affords = async (argument) => {
    await opened.promise;
    return await affords(argument);
  };
  return async () => {
    opened.resolve();
    await settle();
  };
}

/** Each look at the clock finds it so much later, as if every piece of work took long. */
function slowWork({ clock }: Stage, stepMs: number): void {
  const { monotonicMs } = clock;
  let extraMs = 0;
  clock.monotonicMs = () => {
    extraMs += stepMs;
    return monotonicMs.call(clock) + extraMs;
  };
}

/** Processor time that the service has counted as unpaid, milliseconds. */
function unpaid(at: Stage): () => number {
  const spent: number[] = [];
  const { unpaid } = at.service.socket;
  const spend = unpaid.spend.bind(unpaid);
  unpaid.spend = (accountId, ms) => {
    spent.push(ms);
    spend(accountId, ms);
  };
  return () => spent.reduce((sum, ms) => sum + ms, 0);
}

const LARGE = JSON.stringify({ type: "observation", robot_state: jointState, pad: Array(14_000).fill([]) });

describe("messages that wait for their session", () => {
  test("a failure counts the observations without reading them again", async () => {
    const one = await peer();
    const open = slowOpening(one.at);
    one.sayOpen();
    await settle();
    for (let n = 0; n < LIMITS.socketPendingMessagesMax; n += 1) one.episode.receive(LARGE);
    const { parse } = JSON;
    let parsed = 0;
    JSON.parse = (text: string) => {
      parsed += 1;
      return parse(text);
    };
    try {
      // One too many, and too short to be read.
      one.episode.receive(Uint8Array.of(0));
    } finally {
      JSON.parse = parse;
    }
    expect(parsed).toBe(0);
    expect(one.last).toMatchObject({ code: "message_too_large", closing: true, dropped: 128 });
    await open();
    expect(held(one.at)).toEqual(NOTHING);
  });

  test("the loop gets its turn between them, and what comes meanwhile stays behind them", async () => {
    const at = await stage();
    slowWork(at, 6);
    const worked: number[] = [];
    const backlog = new Backlog(at.clock, ({ bytes }) => worked.push(bytes));
    const push = (bytes: number) => backlog.push({ message: new Uint8Array(), bytes, arrivedMs: 0 });
    backlog.hold();
    for (const bytes of [1, 2, 3]) push(bytes);
    const released = backlog.release();
    expect([worked, backlog.waits]).toEqual([[1], true]);
    push(4);
    await new Promise((done) => setImmediate(done));
    expect(worked.length).toBeLessThan(4);
    await released;
    expect([worked, backlog.waits]).toEqual([[1, 2, 3, 4], false]);
  });

  test("observations that come while earlier ones are worked on are answered after them", async () => {
    const one = await peer();
    const open = slowOpening(one.at);
    one.sayOpen();
    await settle();
    const next = gate(one.at);
    for (const id of ["a", "b", "c"]) one.sayObserve({ observation_id: id });
    slowWork(one.at, 6);
    setImmediate(() => one.sayObserve({ observation_id: "late" }));
    await open();
    for (let n = 0; n < 20; n += 1) await settle();
    for (let n = 0; n < 4; n += 1) await next();
    expect(ids(one).slice(1)).toEqual(["a", "b", "c", "late"]);
    expect((one.heard as Heard[]).slice(1).map(({ type }) => type)).toEqual(Array(4).fill("action_chunk"));
    expect(held(one.at)).toEqual(NOTHING);
  });

  test("behind a refused session.open, one that has waited too has what follows it wait on", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    one.episode.dropped();
    const again = new Peer(one.at);
    again.sayOpen({ session_id: "s", instruction: "other" });
    again.sayObserve({ observation_id: "a" }, []);
    again.sayOpen({ session_id: "s" });
    again.sayObserve({ observation_id: "b" });
    await settle();
    expect((again.heard as Heard[]).map(({ code, type, observation_id: id }) => [code ?? type, id])).toEqual([
      ["instruction_changed", undefined],
      ["session_missing", "a"],
      ["session.opened", undefined],
      ["action_chunk", "b"],
    ]);
    expect(held(one.at)).toEqual(NOTHING);
  });
});

describe("the work on a message that nobody pays for is counted whole", () => {
  test("the work on a refused message is counted, also if it ends the connection", async () => {
    const at = await stage();
    slowWork(at, 100);
    const spent = unpaid(at);
    const one = new Peer(at);
    one.sayOpen({ model: "no/such" });
    expect([one.last.closing, one.closed]).toEqual([true, 1008]);
    expect(spent()).toBeGreaterThanOrEqual(100);
  });

  test("what waits for a session that is refused", async () => {
    const at = await stage();
    at.store.charges.affords = async () => "payment_required";
    const spent = unpaid(at);
    const one = new Peer(at);
    one.sayOpen();
    slowWork(at, 100);
    one.sayObserve({}, []);
    await settle();
    expect(one.last).toMatchObject({ code: "payment_required", dropped: 1 });
    expect(spent()).toBeGreaterThanOrEqual(100);
  });

  test("a replay is unpaid, a chunk is paid", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    const spent = unpaid(one.at);
    slowWork(one.at, 10);
    expect(await one.act({ observation_id: "o" })).toMatchObject({ type: "action_chunk" });
    expect(spent()).toBe(0);
    expect(await one.act({ observation_id: "o" })).toMatchObject({ type: "action_chunk", replayed: true });
    // Three frames and the observation.
    expect(spent()).toBeGreaterThanOrEqual(40);
  });
});

test("the frames that a refused text drops give their room back", async () => {
  const one = await peer();
  await one.open({ session_id: "s" });
  for (let n = 0; n < 3; n += 1) {
    one.frames(Array(100).fill(0));
    await one.say("{");
    expect(one.last).toMatchObject({ code: "invalid_json", closing: false });
    expect(held(one.at)).toEqual(NOTHING);
  }
  expect(await one.act()).toMatchObject({ type: "action_chunk", step: 0 });
});
