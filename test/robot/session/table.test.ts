import { describe, expect, test } from "bun:test";
import { SlotPool } from "../../../src/robot/session/slots.ts";
import { SessionTable } from "../../../src/robot/session/table.ts";
import type { Ticket } from "../../../src/robot/session/ticket.ts";
import { Failure } from "../../../src/std/failure.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { FakeClock } from "../../std/fake-clock.ts";

const counts = { first: 3, later: 3 };
const request = { instruction: "fold", expectedStep: undefined, images: 3 };

function name(sessionId: string | undefined, accountId = "a1", model = "m1") {
  return { accountId, model, sessionId };
}

function ticket(result: Ticket | Failure): Ticket {
  if (result instanceof Failure) throw new Error(result.message);
  return result;
}

/** A table beside the record that a store would keep of the sessions that opened. */
class Stand {
  readonly clock = new FakeClock();
  down = false;
  readonly seen = new Map<string, number>();
  readonly table: SessionTable;

  constructor(bounds: { readonly sessionsMax?: number; readonly namedHourMax?: number } = {}) {
    const store = {
      sessionLastAt: async ({
        accountId,
        model,
        sessionId,
      }: {
        accountId: string;
        model: string;
        sessionId: string;
      }) => (this.down ? new StoreDown("off") : this.seen.get(`${accountId} ${model} ${sessionId}`)),
      sessionOpen: async () => "kept" as const,
    };
    this.table = new SessionTable(this.clock, store, bounds.sessionsMax, bounds.namedHourMax);
  }

  async begin(which = name("s"), changes: object = {}, slots?: SlotPool) {
    return await this.table.begin(which, { ...request, ...changes }, counts, slots);
  }

  async hold(which = name("s"), slots?: SlotPool): Promise<Ticket> {
    return ticket(await this.begin(which, {}, slots));
  }

  /** One chunk that is answered, and recorded as the service does. */
  async chunk(which = name("s"), slots?: SlotPool): Promise<number> {
    const held = await this.hold(which, slots);
    expect(held.admit()).toBeUndefined();
    const { accountId, model } = which;
    if (held.named) this.seen.set(`${accountId} ${model} ${held.sessionId}`, this.clock.unixMs() / 1000);
    held.commit();
    return held.step;
  }

  async code(which = name("s"), changes: object = {}): Promise<string> {
    const result = await this.begin(which, changes);
    if (result instanceof Failure) return result.code;
    result.fail();
    return `step ${result.step}`;
  }
}

test("sessions are keyed by account, model and session_id", async () => {
  const stand = new Stand();
  await stand.chunk();
  const others = [name("t"), name("s", "a2"), name("s", "a1", "m2"), name("s")];
  expect(await Promise.all(others.map((other) => stand.chunk(other)))).toEqual([0, 0, 0, 1]);
});

test("idle for 60 seconds: 410, until the record of the session is forgotten", async () => {
  const stand = new Stand();
  await stand.chunk();
  stand.clock.advance(59_999);
  await stand.chunk();
  stand.clock.advance(60_000);
  stand.table.sweep();
  expect(stand.table.size).toBe(0);
  expect(await stand.begin()).toMatchObject({ code: "session_expired", status: 410 });
  stand.clock.advance(24 * 3_600_000 - 1);
  expect(await stand.code()).toBe("session_expired");
  // Forgetting is the store's: with its record the id is new again.
  stand.seen.clear();
  expect(await stand.code()).toBe("step 0");
});

test("a first request that begins while another looks its id up never finds it free", async () => {
  for (let turns = 0; turns < 8; turns += 1) {
    const stand = new Stand();
    const first = stand.begin();
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    const second = await stand.begin();
    const results = [await first, second].map((result) => (result instanceof Failure ? result.code : result.step));
    expect(results).toEqual([0, "session_busy"]);
  }
});

test("a session of an earlier process answers 410", async () => {
  const stand = new Stand();
  stand.seen.set("a1 m1 s", stand.clock.unixMs() / 1000 - 3600);
  expect(await stand.code()).toBe("session_expired");
  expect(await stand.code(name("s", "a2"))).toBe("step 0");
});

test("a session that never opened leaves nothing: its id is new", async () => {
  const stand = new Stand();
  (await stand.hold()).fail();
  expect(await stand.code()).toBe("step 0");
});

test("a record that does not answer: 503 metering_unavailable, and the id is free again afterwards", async () => {
  const stand = new Stand();
  stand.down = true;
  expect(await stand.begin()).toMatchObject({ code: "metering_unavailable", status: 503, retryAfterSeconds: 1 });
  stand.down = false;
  expect(await stand.code()).toBe("step 0");
});

test("a refused request does not keep a session alive; a running one does not expire", async () => {
  const stand = new Stand();
  await stand.chunk();
  stand.clock.advance(40_000);
  expect(await stand.code(name("s"), { images: 1 })).toBe("image_count_mismatch");
  const other = await stand.hold(name("t"));
  stand.clock.advance(20_000);
  expect(await stand.code()).toBe("session_expired");
  stand.clock.advance(100_000);
  other.commit();
  expect(await stand.code(name("t"))).toBe("step 1");
});

test("without session_id a request takes no slot and its anon- id cannot be used again", async () => {
  const stand = new Stand();
  const alone = await stand.hold(name(undefined));
  expect([alone.named, alone.step, alone.slot]).toEqual([false, 0, undefined]);
  expect(alone.sessionId).toMatch(/^anon-[0-9A-Za-z]{24}$/);
  expect(stand.table.size).toBe(0);
  alone.commit();
  expect(await stand.code(name(alone.sessionId))).toBe("session_expired");
});

test("a session that its client ends answers 410; ending what is not there does nothing", async () => {
  const stand = new Stand();
  stand.table.end({ accountId: "a1", model: "m1", sessionId: "s" });
  await stand.chunk();
  stand.table.end({ accountId: "a2", model: "m1", sessionId: "s" });
  expect(await stand.code()).toBe("step 1");
  stand.table.end({ accountId: "a1", model: "m1", sessionId: "s" });
  expect([stand.table.size, await stand.code()]).toEqual([0, "session_expired"]);
});

test("a session that is ended while it runs: the chunk is answered, others get 410 at once", async () => {
  const stand = new Stand();
  await stand.chunk();
  const held = await stand.hold();
  stand.table.end({ accountId: "a1", model: "m1", sessionId: "s" });
  expect(await stand.code()).toBe("session_expired");
  held.commit();
  expect([stand.table.size, await stand.code()]).toEqual([0, "session_expired"]);
});

test("a full table: 429 no_replica_free with the seconds until the first session can come free", async () => {
  const stand = new Stand({ sessionsMax: 2 });
  await stand.chunk(name("s1"));
  stand.clock.advance(10_500);
  await stand.chunk(name("s2"));
  const third = await stand.hold(name("s3"));
  expect(third.admit()).toMatchObject({ code: "no_replica_free", status: 429, retryAfterSeconds: 50 });
  third.fail();
  await stand.chunk(name("s1"));
  stand.clock.advance(60_000);
  expect((await stand.hold(name("s3"))).admit()).toBeUndefined();
});

test("a ticket is given back once", async () => {
  const held = await new Stand().hold();
  held.commit();
  expect(() => held.fail()).toThrow("given back once");
});

/** Slots of a model with memory, and which of them were dropped. */
function pool(slots: number, replicas = 1): { pool: SlotPool; dropped: number[] } {
  const dropped: number[] = [];
  return {
    pool: new SlotPool({
      slots,
      replicas,
      sessionDrop: (slot) => {
        dropped.push(slot);
      },
    }),
    dropped,
  };
}

test("capacity is counted in slots: each session holds one until it ends, and its memory is dropped then", async () => {
  const stand = new Stand();
  // One of the three slots is kept for accounts that have none.
  const { pool: slots, dropped } = pool(3);
  await stand.chunk(name("s1"), slots);
  await stand.chunk(name("s2"), slots);
  await stand.chunk(name("s1"), slots);
  expect([slots.freeCount, dropped]).toEqual([1, []]);
  stand.clock.advance(20_000);
  const third = await stand.hold(name("s3"), slots);
  expect(third.admit()).toMatchObject({ code: "no_replica_free", retryAfterSeconds: 40 });
  third.fail();
  stand.clock.advance(40_000);
  stand.table.sweep();
  expect([slots.freeCount, dropped.toSorted()]).toEqual([3, [0, 1]]);
});

test("Retry-After is true: a second before it there is no place, then there is", async () => {
  const stand = new Stand();
  const { pool: slots } = pool(1);
  await stand.chunk(name("s1"), slots);
  stand.clock.advance(12_345);
  const refused = (await stand.hold(name("s2"), slots)).admit();
  const seconds = refused?.retryAfterSeconds ?? 0;
  stand.clock.advance((seconds - 1) * 1000);
  expect((await stand.hold(name("s3"), slots)).admit()).toMatchObject({
    code: "no_replica_free",
    retryAfterSeconds: 1,
  });
  stand.clock.advance(1000);
  expect((await stand.hold(name("s4"), slots)).admit()).toBeUndefined();
});

test("a first request that fails gives its slot back; a later one keeps it", async () => {
  const stand = new Stand();
  const { pool: slots, dropped } = pool(1);
  const first = await stand.hold(name("s1"), slots);
  expect([first.slot, first.admit(), first.slot]).toEqual([undefined, undefined, 0]);
  first.fail();
  expect([slots.freeCount, dropped]).toEqual([1, [0]]);
  await stand.chunk(name("s1"), slots);
  const later = await stand.hold(name("s1"), slots);
  expect([later.admit(), later.slot]).toEqual([undefined, 0]);
  later.fail();
  expect([slots.freeCount, dropped]).toEqual([0, [0]]);
});

test("sessions spread over replicas", () => {
  const { pool: slots } = pool(4, 2);
  const taken = ["a1", "a2", "a3", "a4", "a5"].map((account) => slots.take(account));
  expect(taken).toEqual([0, 2, 1, 3, undefined]);
  slots.give(2);
  expect(slots.take("a5")).toBe(2);
  slots.give(1);
  expect(() => slots.give(1)).toThrow("given back once");
});

describe("the last eighth of the slots", () => {
  const of = (accountId: string, sessionId: string) => ({ accountId, model: "m1", sessionId });

  test("is kept for accounts that hold none: rounded down, one at least where there are two", () => {
    const most = [1, 2, 3, 8, 15, 16, 64].map((count) => {
      const { pool: slots } = pool(count);
      let taken = 0;
      while (slots.take("a1") !== undefined) taken += 1;
      let others = 0;
      while (slots.take(`b${others}`) !== undefined) others += 1;
      return [count, taken, others];
    });
    expect(most).toEqual([
      [1, 1, 0],
      [2, 1, 1],
      [3, 2, 1],
      [8, 7, 1],
      [15, 14, 1],
      [16, 14, 2],
      [64, 56, 8],
    ]);
  });

  test("Retry-After tells the others when one that they may take can come free, which is true", async () => {
    const stand = new Stand();
    const { pool: slots } = pool(16);
    // 14 slots for one account, each a second after the one before; then another account's has one of the kept.
    for (let n = 0; n < 14; n += 1) {
      await stand.chunk(of("a1", `s${n}`), slots);
      stand.clock.advance(1_000);
    }
    await stand.chunk(of("a2", "t"), slots);
    expect(slots.freeCount).toBe(1);
    const retry = async (account: string, id: string) => {
      const ticket = await stand.hold(of(account, id), slots);
      const refused = ticket.admit();
      ticket.fail();
      return refused?.retryAfterSeconds;
    };
    // Two of the first account's must end, the second of them in 60 − 13 s; the other account has its only one for 60 s.
    expect([await retry("a1", "u"), await retry("a2", "u")]).toEqual([47, 47]);
    expect(await retry("a3", "u")).toBeUndefined();
    stand.clock.advance(46_000);
    expect(await retry("a1", "v")).toBe(1);
    stand.clock.advance(1_000);
    expect(await retry("a1", "w")).toBeUndefined();
  });

  test("an account whose own sessions all end before gets one that is kept then", async () => {
    const stand = new Stand();
    const { pool: slots } = pool(16);
    await stand.chunk(of("a2", "t"), slots);
    stand.clock.advance(10_000);
    for (let n = 0; n < 13; n += 1) await stand.chunk(of("a1", `s${n}`), slots);
    const ticket = await stand.hold(of("a2", "u"), slots);
    expect(ticket.admit()).toMatchObject({ code: "no_replica_free", retryAfterSeconds: 50 });
  });
});

test("the named sessions that one account may open within an hour are bounded, and Retry-After is true", async () => {
  const stand = new Stand({ namedHourMax: 3 });
  for (const id of ["s1", "s2", "s3"]) await stand.chunk(name(id));
  const fourth = await stand.hold(name("s4"));
  const refused = fourth.admit();
  fourth.fail();
  expect(refused).toMatchObject({ code: "rate_limited", status: 429 });
  // What is open goes on.
  expect(await stand.chunk(name("s3"))).toBe(1);
  stand.clock.advance((refused?.retryAfterSeconds ?? 0) * 1_000);
  await stand.chunk(name("s5"));
});
