/** What an account without money, or with much that is refused, can have of the service on a socket. */
import { describe, expect, test } from "bun:test";
import { Fault } from "../../../src/engine/fault.ts";
import { settle } from "../http/outcome.ts";
import { jpeg, observation, STATEFUL, type Stage, stage } from "../stage.ts";
import { held, leave, NOTHING, Peer } from "./peer.ts";

/** 100 prompt tokens and 24 rows (stage.ts, fake-engine.ts). */
const CHUNK = 24_100_000n;

const free = (at: Stage) => at.service.robot.catalog.models.get(STATEFUL)?.slots?.freeCount;

describe("a session takes a slot only if its account could pay for one chunk", () => {
  for (const [code, amount] of [
    ["payment_required", 0n],
    ["insufficient_credit", CHUNK - 1n],
  ] as const) {
    test(`${code} answers session.open with 1008, and nothing is decoded for it`, async () => {
      const at = await stage();
      await leave(at, amount);
      const slots = free(at);
      for (const fields of [{ model: STATEFUL }, { model: STATEFUL, session_id: "s" }, {}]) {
        const one = new Peer(at);
        one.sayOpen(fields);
        one.sayObserve();
        await settle();
        expect(one.heard).toEqual([{ type: "error", code, message: expect.any(String), closing: true, dropped: 1 }]);
        expect([one.closed, free(at), at.service.robot.sessions.size]).toEqual([1008, slots, 0]);
      }
      expect([at.engine.framesPut, held(at)]).toEqual([0, NOTHING]);
      // No record of a session was made either: the name is still free.
      await leave(at, 10n ** 15n + CHUNK);
      expect(await new Peer(at).open({ model: STATEFUL, session_id: "s" })).toMatchObject({ type: "session.opened" });
    });
  }

  test("billing_unavailable when the store does not answer", async () => {
    const at = await stage();
    const { affords } = at.store.charges;
    at.store.charges.affords = async (argument) => {
      at.store.down = true;
      const answer = await affords(argument);
      at.store.down = false;
      return answer;
    };
    const one = new Peer(at);
    expect(await one.open({ model: STATEFUL })).toMatchObject({ code: "billing_unavailable", closing: true });
    expect([one.closed, free(at)]).toEqual([1008, 4]);
  });

  test("a live session that its account cannot pay any more is refused to a new connection, and stays for when it can", async () => {
    const at = await stage();
    const one = new Peer(at);
    await one.open({ model: STATEFUL, session_id: "s" });
    await one.act();
    one.episode.dropped();
    await leave(at, CHUNK);
    const two = new Peer(at);
    expect(await two.open({ model: STATEFUL, session_id: "s" })).toMatchObject({ code: "payment_required" });
    await leave(at, 10n ** 15n + CHUNK);
    const three = new Peer(at);
    expect(await three.open({ model: STATEFUL, session_id: "s" })).toMatchObject({ type: "session.opened", step: 1 });
  });
});

describe("unpaid work on sockets", () => {
  test("frames that are decoded for observations that are refused count; the open socket ends with rate_limited, 1008", async () => {
    const at = await stage({ unpaidSeconds: 5 });
    at.engine.decodeMs = 500;
    at.engine.script.decode = async (file) => (file.length === 70 ? new Fault("bad_image", "no JPEG") : undefined);
    const one = new Peer(at);
    await one.open({ session_id: "s" });
    await one.act();
    for (let n = 0; n < 4; n += 1) {
      one.sayObserve({}, [0, 1, 2], jpeg(70));
      await settle();
      expect(one.last).toMatchObject({ code: "invalid_image", closing: false });
    }
    // Three frames of half a second each, four times.
    await one.observe();
    expect(one.last).toMatchObject({ code: "rate_limited", closing: true });
    expect([one.closed, held(at)]).toEqual([1008, NOTHING]);
  });

  test("a socket's handshake and every request with a body are refused likewise, until Retry-After", async () => {
    const at = await stage({ unpaidSeconds: 5 });
    at.service.http.unpaid.spend("acct_1", 5_000);
    const upgrade = () =>
      at.send("/v1/responses", {
        headers: { authorization: `Bearer ${at.key}`, upgrade: "websocket", connection: "upgrade" },
      });
    const refused = await upgrade();
    const { error } = (await refused.json()) as { error: { code: string } };
    expect([refused.status, error.code]).toEqual([429, "rate_limited"]);
    const chat = await at.chat(observation());
    expect([chat.status, chat.headers.get("retry-after")]).toEqual([429, refused.headers.get("retry-after")]);
    at.clock.advance(Number(chat.headers.get("retry-after")) * 1_000);
    expect((await at.chat(observation())).status).toBe(200);
  });

  test("over HTTP the decode of what is refused counts, and of what is paid does not; another account has its own budget", async () => {
    const at = await stage({ unpaidSeconds: 5 });
    at.engine.decodeMs = 900;
    for (let n = 0; n < 4; n += 1) expect((await at.chat(observation())).status).toBe(200);
    const bad = observation({ robot_state: { joint_position: Array(12).fill(0), gripper_position: [0, 1] } });
    at.engine.script.decode = async () => new Fault("bad_image", "no JPEG");
    const statuses: number[] = [];
    for (let n = 0; n < 4; n += 1) {
      statuses.push((await at.chat(bad)).status);
      await settle();
    }
    expect(statuses).toEqual([400, 400, 429, 429]);
    const other = await at.account("acct_2");
    at.engine.script.decode = async () => undefined;
    expect((await other(observation())).status).toBe(200);
  });

  test("text descriptions count", async () => {
    const at = await stage({ unpaidSeconds: 5 });
    const { monotonicMs } = at.clock;
    // Each look at the clock finds it 1 s later, as if every piece of work took long.
    let extraMs = 0;
    at.clock.monotonicMs = () => {
      extraMs += 1_000;
      return monotonicMs.call(at.clock) + extraMs;
    };
    const statuses: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      statuses.push((await at.chat(observation({ messages: [{ role: "user", content: "who are you?" }] }))).status);
    }
    expect(statuses.slice(0, 2)).toEqual([200, 200]);
    expect(statuses.at(-1)).toBe(429);
  });
});
