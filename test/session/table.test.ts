import { expect, test } from "bun:test";
import { Failure } from "../../src/error.ts";
import { SessionTable, type Ticket } from "../../src/session/table.ts";
import { FakeClock } from "../std/fake-clock.ts";

const counts = { first: 3, later: 3 };
const request = { instruction: "fold", expectedStep: undefined, images: 3 };

function name(sessionId: string | undefined, accountId = "a1", model = "m1") {
  return { accountId, model, sessionId };
}

function ticket(result: Ticket | Failure): Ticket {
  if (result instanceof Failure) throw new Error(result.message);
  return result;
}

test("steps are gapless: 0, 1, 2", () => {
  const table = new SessionTable({ clock: new FakeClock() });
  const steps = [0, 1, 2].map(() => {
    const held = ticket(table.begin(name("s"), request, counts));
    held.commit();
    return held.step;
  });
  expect(steps).toEqual([0, 1, 2]);
});

test("sessions are keyed by account, model and session_id", () => {
  const table = new SessionTable({ clock: new FakeClock() });
  ticket(table.begin(name("s"), request, counts)).commit();
  const others = [name("t"), name("s", "a2"), name("s", "a1", "m2")];
  expect(others.map((other) => ticket(table.begin(other, request, counts)).step)).toEqual([0, 0, 0]);
  expect(ticket(table.begin(name("s"), request, counts)).step).toBe(1);
});

test("another request for the session is running: 409 session_busy, until the ticket is back", () => {
  const table = new SessionTable({ clock: new FakeClock() });
  const first = ticket(table.begin(name("s"), request, counts));
  expect(table.begin(name("s"), request, counts)).toMatchObject({ code: "session_busy", status: 409 });
  first.fail();
  expect(table.size).toBe(0);
  expect(ticket(table.begin(name("s"), { ...request, instruction: "other" }, counts)).step).toBe(0);
});

test("idle for 60 seconds: 410, for 24 hours; then the id is new again", () => {
  const clock = new FakeClock();
  const table = new SessionTable({ clock });
  ticket(table.begin(name("s"), request, counts)).commit();
  clock.advance(59_999);
  ticket(table.begin(name("s"), request, counts)).commit();
  clock.advance(60_000);
  table.sweep();
  expect(table.size).toBe(0);
  expect(table.begin(name("s"), request, counts)).toMatchObject({ code: "session_expired", status: 410 });
  clock.advance(24 * 3_600_000 - 1);
  expect(table.begin(name("s"), request, counts)).toMatchObject({ code: "session_expired" });
  clock.advance(1);
  expect(ticket(table.begin(name("s"), request, counts)).step).toBe(0);
});

test("a refused request does not keep a session alive; a running one does not expire", () => {
  const clock = new FakeClock();
  const table = new SessionTable({ clock });
  ticket(table.begin(name("s"), request, counts)).commit();
  clock.advance(40_000);
  expect(table.begin(name("s"), { ...request, images: 1 }, counts)).toBeInstanceOf(Failure);
  const other = ticket(table.begin(name("t"), request, counts));
  clock.advance(20_000);
  expect(table.begin(name("s"), request, counts)).toMatchObject({ code: "session_expired" });
  clock.advance(100_000);
  other.commit();
  expect(ticket(table.begin(name("t"), request, counts)).step).toBe(1);
});

test("without session_id a request takes no slot and its anon- id cannot be used again", () => {
  const table = new SessionTable({ clock: new FakeClock() });
  const alone = ticket(table.begin(name(undefined), request, counts));
  expect([alone.named, alone.step]).toEqual([false, 0]);
  expect(alone.sessionId).toMatch(/^anon-[0-9A-Za-z]{24}$/);
  expect(table.size).toBe(0);
  alone.commit();
  expect(table.begin(name(alone.sessionId), request, counts)).toMatchObject({ code: "session_expired" });
});

test("a full table: 429 no_replica_free with the seconds until the first session can come free", () => {
  const clock = new FakeClock();
  const table = new SessionTable({ clock, sessionsMax: 2 });
  ticket(table.begin(name("s1"), request, counts)).commit();
  clock.advance(10_500);
  ticket(table.begin(name("s2"), request, counts)).commit();
  const third = ticket(table.begin(name("s3"), request, counts));
  expect(third.admit()).toMatchObject({ code: "no_replica_free", status: 429, retryAfterSeconds: 50 });
  third.fail();
  const old = ticket(table.begin(name("s1"), request, counts));
  expect(old.admit()).toBeUndefined();
  old.commit();
  clock.advance(49_500);
  clock.advance(10_500);
  expect(ticket(table.begin(name("s3"), request, counts)).admit()).toBeUndefined();
});

test("the list of ended ids is bounded: the oldest goes first", () => {
  const clock = new FakeClock();
  const table = new SessionTable({ clock, endedMax: 2 });
  for (const id of ["s1", "s2", "s3"]) {
    ticket(table.begin(name(id), request, counts)).commit();
    clock.advance(60_000);
    table.sweep();
  }
  expect(ticket(table.begin(name("s1"), request, counts)).step).toBe(0);
  expect(table.begin(name("s2"), request, counts)).toMatchObject({ code: "session_expired" });
});

test("a ticket is given back once", () => {
  const table = new SessionTable({ clock: new FakeClock() });
  const held = ticket(table.begin(name("s"), request, counts));
  held.commit();
  expect(() => held.fail()).toThrow("given back once");
});
