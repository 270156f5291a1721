/** Connections that take a session for themselves, drop, and come back before the last one's work is done. */
import { expect, test } from "bun:test";
import { SlotPool } from "../../../src/robot/session/slots.ts";
import { type Holder, SessionTable } from "../../../src/robot/session/table.ts";
import type { Ticket } from "../../../src/robot/session/ticket.ts";
import { Failure } from "../../../src/std/failure.ts";
import { FakeClock } from "../../std/fake-clock.ts";

const counts = { first: 3, later: 3 };
const request = { instruction: "fold", expectedStep: undefined, images: 3 };
const name = { accountId: "a1", model: "m1", sessionId: "s" };

/** Every account can pay. */
const unpayable = async () => undefined;

class Connection implements Holder {
  readonly keyId = "key";
  gone = false;
  ended = false;

  async answers(): Promise<boolean> {
    return !this.gone;
  }

  takenOver(): void {}

  sessionEnded(): void {
    this.ended = true;
  }
}

/** A table beside a store that answers when it is let, and remembers which sessions there were. */
class Stand {
  readonly clock = new FakeClock();
  readonly slots: SlotPool;
  readonly table: SessionTable;
  /** The store's answers that wait; undefined: it answers at once. */
  waiting: (() => void)[] | undefined;
  private readonly opened = new Set<string>();

  /** One slot on each replica. */
  constructor(replicas = 1) {
    this.slots = new SlotPool({ slots: replicas, replicas, sessionDrop: () => {} });
    const answer = <T>(work: () => T) =>
      new Promise<T>((resolve) => {
        const say = () => resolve(work());
        if (this.waiting) this.waiting.push(say);
        else say();
      });
    const store = {
      sessionLastAt: ({ sessionId }: { sessionId: string }) =>
        answer(() => (this.opened.has(sessionId) ? 1 : undefined)),
      sessionOpen: ({ sessionId }: { sessionId: string }) =>
        answer(() => {
          this.opened.add(sessionId);
          return "kept" as const;
        }),
    };
    this.table = new SessionTable(this.clock, store);
  }

  async open(holder: Holder, sessionId = name.sessionId) {
    const { slots } = this;
    const held = await this.table.hold({ ...name, sessionId, instruction: "fold", holder, slots, unpayable });
    return held instanceof Failure ? held.code : held;
  }

  async run(holder: Holder): Promise<Ticket> {
    const ticket = await this.table.begin({ ...name, holder }, request, counts, this.slots);
    if (ticket instanceof Failure) throw new Error(ticket.message);
    return ticket;
  }

  drop(holder: Connection): void {
    holder.gone = true;
    this.table.release({ ...name, holder }, "stay");
  }

  /** The store gives its next answer. */
  async answer(): Promise<void> {
    this.waiting?.shift()?.();
    await new Promise((done) => setImmediate(done));
  }
}

test("a connection that dropped while it waited for a session takes it from nobody", async () => {
  const stand = new Stand();
  const [a, b, c, d] = [new Connection(), new Connection(), new Connection(), new Connection()];
  await stand.open(a);
  const ticket = await stand.run(a);
  stand.drop(a);
  const opens = [stand.open(b), stand.open(c), stand.open(d)];
  stand.drop(b);
  ticket.commit();
  expect(await Promise.all(opens)).toEqual(["gone", { sessionId: "s", step: 1 }, "session_busy"]);
  expect([b.ended, stand.slots.freeCount]).toEqual([false, 0]);
});

test("a connection that comes back while the store is asked for its last one waits, and has the session", async () => {
  // The store is asked what the session was, then told that it is open.
  for (const answersBeforeDrop of [0, 1]) {
    const stand = new Stand();
    stand.waiting = [];
    const [a, b] = [new Connection(), new Connection()];
    const first = stand.open(a);
    for (let answer = 0; answer < answersBeforeDrop; answer += 1) await stand.answer();
    stand.drop(a);
    const second = stand.open(b);
    for (let answer = 0; answer < 4; answer += 1) await stand.answer();
    expect([await first, await second]).toEqual(["gone", { sessionId: "s", step: 0 }]);
    expect([stand.slots.freeCount, stand.table.size]).toEqual([0, 1]);
  }
});

test("the first of two connections that open a session at once has it; the other gets session_busy", async () => {
  const stand = new Stand();
  const both = [stand.open(new Connection()), stand.open(new Connection())];
  expect(await Promise.all(both)).toEqual([{ sessionId: "s", step: 0 }, "session_busy"]);
});

test("a connection that dropped before its new session was open leaves nothing, or an idle session where that is recorded", async () => {
  for (const [sessionId, left] of [
    ["s", 1],
    [undefined, 0],
  ] as const) {
    const stand = new Stand();
    stand.waiting = [];
    const a = new Connection();
    const open = stand.table.hold({
      ...name,
      sessionId,
      instruction: "fold",
      holder: a,
      slots: stand.slots,
      unpayable,
    });
    if (sessionId !== undefined) await stand.answer();
    stand.drop(a);
    for (let answer = 0; answer < 2; answer += 1) await stand.answer();
    await open;
    expect([stand.table.size, stand.slots.freeCount]).toEqual([left, 1 - left]);
    stand.clock.advance(60_000);
    stand.table.sweep();
    expect([stand.table.size, stand.slots.freeCount, a.ended]).toEqual([0, 1, false]);
  }
});

test("in a session that a connection opened as a new one the first request for an observation is known to be it", async () => {
  const stand = new Stand();
  const first = (id: string) => stand.table.isFirst(name, id);
  expect(first("o")).toBe(false);
  stand.waiting = [];
  const opening = stand.open(new Connection());
  // Asked for while the session is opened: nobody knows what the store will say of it, and it may run afterwards.
  expect(first("early")).toBe(false);
  for (let answer = 0; answer < 2; answer += 1) await stand.answer();
  await opening;
  expect([first("early"), first("o"), first("o"), first("p")]).toEqual([false, true, false, true]);
});

test("in a session that an observation with an id opened as a new one the first request for another one is known to be it", async () => {
  const stand = new Stand();
  const begin = async (observationId: string) => {
    const ticket = await stand.table.begin({ ...name, observationId }, request, counts, stand.slots);
    if (ticket instanceof Failure) return ticket;
    expect(ticket.admit()).toBeUndefined();
    ticket.commit();
    return ticket;
  };
  const first = (id: string) => stand.table.isFirst(name, id);
  // Before it is in the table, as the second one, whose answer of the store is late.
  expect([first("o"), first("late")]).toEqual([false, false]);
  await begin("o");
  expect([first("o"), first("p"), first("p")]).toEqual([false, true, false]);
  await begin("late");
  expect(first("late")).toBe(false);
});

test("in a session whose first observation had no id the store is asked about every observation", async () => {
  const stand = new Stand();
  const ticket = await stand.table.begin(name, request, counts, stand.slots);
  if (ticket instanceof Failure) throw new Error(ticket.message);
  expect(ticket.admit()).toBeUndefined();
  ticket.commit();
  const connection = new Connection();
  expect(await stand.open(connection)).toMatchObject({ step: 1 });
  expect(stand.table.isFirst(name, "o")).toBe(false);
});

test("a session whose replica is lost while its opening is recorded ends before it begins, and a new one has another replica", async () => {
  const stand = new Stand(2);
  stand.waiting = [];
  const connection = new Connection();
  const opening = stand.open(connection);
  await stand.answer();
  expect(stand.slots.freeCount).toBe(1);
  // Each new session goes to the replica with the most free slots: the first to replica 0.
  stand.slots.lose(0);
  stand.table.loseSlots(stand.slots);
  await stand.answer();
  expect(await opening).toBe("session_expired");
  expect([stand.table.size, stand.slots.freeCount, connection.ended]).toEqual([0, 1, false]);
  stand.waiting = undefined;
  expect(await stand.open(connection)).toBe("session_expired");
  expect(await stand.open(connection, "t")).toEqual({ sessionId: "t", step: 0 });
});

test("a session whose connection dropped and whose replica was lost before it was open has ended for the next connection", async () => {
  const stand = new Stand(2);
  stand.waiting = [];
  const [a, b] = [new Connection(), new Connection()];
  const first = stand.open(a);
  await stand.answer();
  stand.drop(a);
  stand.slots.lose(0);
  stand.table.loseSlots(stand.slots);
  const second = stand.open(b);
  for (let answer = 0; answer < 4; answer += 1) await stand.answer();
  expect([await first, await second]).toEqual(["session_expired", "session_expired"]);
  expect([stand.table.size, stand.slots.freeCount]).toEqual([0, 1]);
});
