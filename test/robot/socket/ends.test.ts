/** How connections end, and that nothing of them stays. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { failureOf } from "../../../src/robot/faults.ts";
import { settle } from "../http/outcome.ts";
import { jpeg, MODEL, STATEFUL, stage } from "../stage.ts";
import { gate, held, ids, NOTHING, Peer, peer } from "./peer.ts";

/** Three ways in which a connection ends behind a `session.close` that waits for an observation. */
describe("a session.close that waits is the client's last word", () => {
  const ends: [name: string, end: (one: Peer, next: () => Promise<void>) => void | Promise<void>][] = [
    ["the connection is cut", (one) => one.episode.dropped()],
    [
      "the client does not read",
      async (one, next) => {
        one.wire.drops = true;
        await next();
      },
    ],
    [
      "the observation before it fails",
      async (one, next) => {
        const { engine } = one.at;
        one.at.service.robot.replays.claim = async () => failureOf(engine.fault("no"));
        await next();
      },
    ],
  ];
  for (const [name, end] of ends) {
    test(`${name}: the slot is free as soon as what runs is done, and the id is spent`, async () => {
      const at = await stage();
      const one = new Peer(at);
      await one.open({ model: STATEFUL, session_id: "s" });
      const next = gate(at);
      await one.act({ observation_id: "a" });
      await one.act({ observation_id: "b" });
      await one.say({ type: "session.close" });
      await end(one, next);
      await next();
      expect([one.ended, at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount, held(at)]).toEqual([
        true,
        4,
        NOTHING,
      ]);
      const again = new Peer(at);
      expect(await again.open({ model: STATEFUL, session_id: "s" })).toMatchObject({ code: "session_expired" });
    });
  }
});

describe("ends", () => {
  test("a client that does not read is closed with 1013 once 1 MiB waits for it; nothing is dropped silently", async () => {
    const one = await peer();
    await one.open();
    one.wire.unread = LIMITS.socketUnsentBytesMax;
    await one.act();
    expect([one.closed, one.ended, held(one.at)]).toEqual([1013, true, NOTHING]);
    one.at.clock.advance(LIMITS.socketCloseMs);
    expect(one.wire.terminated).toBe(true);

    const dropped = await peer();
    await dropped.open();
    dropped.wire.drops = true;
    await dropped.act();
    expect([dropped.closed, held(dropped.at)]).toEqual([1013, NOTHING]);
  });

  test("a connection that goes away before the model starts takes its observation back", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    const { promise, resolve } = Promise.withResolvers<void>();
    one.at.engine.script.start = () => promise;
    await one.act({ observation_id: "o" });
    one.episode.dropped();
    await settle();
    resolve();
    await settle();
    expect([one.at.store.kept.length, one.at.service.robot.replays.size, held(one.at)]).toEqual([0, 0, NOTHING]);
  });

  test("the service ends: all that was asked for is answered, in order; what comes later is engine_unavailable, 1011", async () => {
    const one = await peer();
    one.at.service.socket.sockets.add(one.episode);
    await one.open();
    const next = gate(one.at);
    for (const id of ["a", "b", "c"]) await one.act({ observation_id: id });
    one.at.service.core.lifecycle.drain().catch(() => {});
    one.at.service.socket.sockets.drain();
    await one.act({ observation_id: "d" });
    for (let n = 0; n < 3; n += 1) await next();
    const answered = ["a", "b", "c", "d"];
    expect([ids(one).slice(1), one.last.code, one.closed]).toEqual([answered, "engine_unavailable", 1011]);
  });

  test("a fault of our own before an observation is a command gives its frames back, and every log line has the request's id", async () => {
    const one = await peer();
    await one.open();
    one.at.service.core.keys.find = async () => {
      throw new Error("assertion failed: a test");
    };
    await one.act();
    await settle();
    expect([one.last.code, one.closed, held(one.at)]).toEqual(["internal_error", 1011, NOTHING]);
    expect(one.at.service.robot.admission.takeEarly("acct_1", MODEL, LIMITS.accountEarlyFramesMax)).toBeDefined();
    expect(one.at.logLines.filter((line) => !line.includes('"request":"req_peer"'))).toEqual([]);
  });

  test("messages that wait while a session is opened are counted in the memory of all requests", async () => {
    const at = await stage({ ingressBytesMax: 10_000 });
    const { promise, resolve } = Promise.withResolvers<undefined>();
    at.store.robot.sessionLastAt = () => promise as never;
    const one = new Peer(at);
    await one.say({ type: "session.open", model: MODEL, instruction: "x", session_id: "s" });
    expect(one.heard).toEqual([]);
    one.frames([0, 1], jpeg(3_000));
    expect(at.service.http.ingress.bytes).toBe(6_002);
    one.frames([2], jpeg(3_000));
    expect([one.last.code, one.closed]).toEqual(["engine_unavailable", 1011]);
    resolve(undefined);
    await settle();
    // It was not recorded yet: its id is new.
    expect([held(at), at.service.robot.sessions.size]).toEqual([NOTHING, 0]);
  });

  test("the service ends: what was asked for is answered, then session.closed and 1001", async () => {
    const at = await stage();
    const [busy, idle, bare] = [new Peer(at), new Peer(at), new Peer(at)];
    for (const one of [busy, idle, bare]) at.service.socket.sockets.add(one.episode);
    await busy.open();
    await idle.open();
    const next = gate(at);
    for (const id of ["a", "b"]) await busy.act({ observation_id: id });
    const drained = at.service.core.lifecycle.drain();
    at.service.socket.sockets.drain();
    const goodbye = { type: "session.closed", reason: "shutdown" };
    expect([idle.last, idle.closed]).toEqual([goodbye, 1001]);
    expect([bare.heard, bare.closed]).toEqual([[goodbye], 1001]);
    for (let n = 0; n < 2; n += 1) await next();
    await drained;
    expect([ids(busy).slice(1), busy.last.type, busy.closed]).toEqual([["a", "b", undefined], "session.closed", 1001]);
  });
});
