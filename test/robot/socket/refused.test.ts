/** What becomes of the observations that were sent behind a `session.open` that is refused. */
import { describe, expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { settle } from "../http/outcome.ts";
import { STATEFUL, type Stage, stage } from "../stage.ts";
import { gate, type Heard, held, money, NOTHING, Peer, peer } from "./peer.ts";

const LONG = `"${"x".repeat(LIMITS.socketTextCharsMax)}"`;

/** What refuses a `session.open` behind which frames and an observation were sent. */
const REFUSALS: readonly {
  code: string;
  before: (at: Stage) => void | Promise<void>;
  fields?: object;
  key?: string;
}[] = [
  {
    code: "session_busy",
    fields: { session_id: "s" },
    before: async (at) => {
      await new Peer(at).open({ session_id: "s" });
    },
  },
  {
    code: "no_replica_free",
    fields: { model: STATEFUL },
    before: async (at) => {
      for (let n = 0; n < 4; n += 1) await new Peer(at).open({ model: STATEFUL });
    },
  },
  {
    code: "session_expired",
    fields: { session_id: "s" },
    before: async (at) => {
      const one = new Peer(at);
      await one.open({ session_id: "s" });
      await one.say({ type: "session.close" });
    },
  },
  {
    code: "auth_unavailable",
    before: ({ service }) => {
      service.core.drills.strikes = (name) => name === "auth_unavailable";
    },
  },
  {
    code: "metering_unavailable",
    fields: { session_id: "s" },
    before: ({ store }) => {
      store.robot.sessionOpen = async () => new StoreDown("switched off by the test");
    },
  },
  { code: "invalid_api_key", key: "none", before: () => {} },
];

describe("observations behind a session.open that is refused", () => {
  for (const { code, fields, before, key } of REFUSALS) {
    test(`${code}: closing, 1008; they are dropped, and the error says how many`, async () => {
      const at = await stage();
      await before(at);
      const one = new Peer(at, key ?? at.key);
      one.sayOpen(fields);
      for (const id of ["a", "b"]) one.sayObserve({ observation_id: id });
      await settle();
      expect(one.heard).toMatchObject([{ type: "error", code, closing: true, dropped: 2 }]);
      expect([one.closed, one.ended, at.engine.observations.length, held(at)]).toEqual([1008, true, 0, NOTHING]);
      expect(await money(at)).toEqual({ paid: 0n, held: 0n });
    });
  }

  test("session_busy: the observations of the connection that has the session go on", async () => {
    const one = await peer();
    await one.open({ session_id: "s" });
    const next = gate(one.at);
    for (const id of ["a", "b"]) one.sayObserve({ observation_id: id });
    const other = new Peer(one.at);
    expect(await other.open({ session_id: "s" })).toMatchObject({ code: "session_busy" });
    for (let n = 0; n < 2; n += 1) await next();
    expect((one.heard.slice(1) as Heard[]).map(({ type }) => type)).toEqual(["action_chunk", "action_chunk"]);
  });

  test("message_too_large before a session: closing, 1008; what comes behind the text is not read", async () => {
    const one = await peer();
    one.episode.receive(LONG);
    one.sayOpen();
    one.sayObserve();
    await settle();
    expect(one.heard).toEqual([
      { type: "error", code: "message_too_large", message: expect.any(String), closing: true },
    ]);
    expect([one.closed, one.at.engine.observations.length, held(one.at)]).toEqual([1008, 0, NOTHING]);
  });

  test("message_too_large while it is opened: 129 messages that wait for it close it, and none is worked on", async () => {
    const one = await peer();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    one.at.store.robot.sessionLastAt = () => promise as never;
    one.sayOpen({ session_id: "s" });
    one.sayObserve();
    one.frames(Array(LIMITS.socketPendingMessagesMax - 3).fill(0));
    resolve(undefined);
    await settle();
    expect(one.heard).toMatchObject([{ code: "message_too_large", closing: true }]);
    expect([one.closed, one.at.engine.observations.length, held(one.at)]).toEqual([1008, 0, NOTHING]);
  });
});
