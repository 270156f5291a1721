/** Group commit for PostgreSQL while the server says nothing: everybody who waits is told in time what is known. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { Lane, Lanes } from "../../../src/store/postgres/lane.ts";
import { Unanswered } from "../../../src/store/postgres/pool.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { settle } from "../../robot/http/outcome.ts";
import { FakeClock } from "../../std/fake-clock.ts";

type Rows = readonly Record<string, unknown>[] | Unanswered;

/** Lanes on a clock of the test, and the groups that they sent; each waits for the test to answer it. */
function lanesOf(count = 1) {
  const clock = new FakeClock();
  const groups: { runs: string[]; answer: (rows: Rows) => void }[] = [];
  const rows = (_text: string, [orders]: readonly (string | boolean)[]): Promise<Rows> => {
    const { promise, resolve } = Promise.withResolvers<Rows>();
    const runs = (JSON.parse(String(orders)) as { chargeId: string }[]).map(({ chargeId }) => chargeId);
    groups.push({ runs, answer: resolve });
    return promise;
  };
  const lanes = new Lanes(count, () => new Lane({ pool: { rows }, apart: { rows } }, clock, "apply", true));
  return {
    /** The members of each group. */
    sent: () => groups.map(({ runs }) => runs.join()),
    release: (chargeId: string, accountId = "a") => {
      const order = { order: "charges.release", accountId, chargeId };
      return lanes.write(order);
    },
    answer: async (group: number, ...outcomes: readonly [Unanswered] | readonly string[]) => {
      const [failure] = outcomes;
      groups[group]?.answer(failure instanceof Unanswered ? failure : [{ outcomes }]);
      await settle();
    },
    after: async (ms: number) => {
      clock.advance(ms);
      await settle();
    },
  };
}

const SILENT = new Unanswered("silent", true);
const REFUSED = new Unanswered("refused", false);
const WRONG = new Unanswered("22003: out of range", false, "order");
const LOCKED = new Unanswered("55P03: lock not available", false, "lock");

test("a write behind a group without an answer fails with it, and is known not to be done", async () => {
  const { sent, release, answer, after } = lanesOf();
  const first = release("r1");
  await settle();
  await after(LIMITS.storeAnswerMs - 1);
  const second = release("r2");
  await after(1);
  expect(await first).toMatchObject({ outcomeUnknown: true });
  await after(LIMITS.storeAnswerMs - 1);
  expect(await second).toMatchObject({ outcomeUnknown: false });
  // Their callers have given up: they are not sent again, and the next one is.
  await answer(0, SILENT);
  const third = release("r3");
  await after(LIMITS.storeBackoffMs);
  await answer(1, "released");
  expect([await third, ...sent()]).toEqual(["released", "r1", "r3"]);
});

test("a group that got no answer is sent again together with what came meanwhile", async () => {
  const { sent, release, answer, after } = lanesOf();
  const first = release("r1");
  await settle();
  const second = release("r2");
  await answer(0, SILENT);
  await after(LIMITS.storeBackoffMs);
  await answer(1, "released", "unknown");
  expect([await first, await second, ...sent()]).toEqual(["released", "unknown", "r1", "r1,r2"]);
});

test("what was never sent is known not to be done; after one try without an answer nobody knows", async () => {
  for (const [tries, outcomeUnknown] of [
    [[REFUSED, REFUSED], false],
    [[SILENT, REFUSED], true],
  ] as const) {
    const { release, answer, after } = lanesOf();
    const outcome = release("r1");
    await settle();
    for (const [index, failure] of tries.entries()) {
      await answer(index, failure);
      if (index + 1 < tries.length) await after(LIMITS.storeBackoffMs);
    }
    await after(LIMITS.storeAnswerMs);
    expect(await outcome).toEqual(new StoreDown("refused", outcomeUnknown));
  }
});

test("an order that the database will never take is told so at once, and takes no other one of its group with it", async () => {
  const { sent, release, answer } = lanesOf();
  const orders = [release("r1"), release("r2"), release("r3")];
  await settle();
  await answer(0, WRONG);
  await answer(1, "released");
  await answer(2, WRONG);
  await answer(3, "unknown");
  expect(await Promise.all(orders)).toMatchObject(["released", { outcomeUnknown: false }, "unknown"]);
  expect(sent()).toEqual(["r1,r2,r3", "r1", "r2", "r3"]);
});

test("an order that is over is not sent any more when its group is taken apart", async () => {
  const { sent, release, answer, after } = lanesOf();
  const first = release("r1");
  await settle();
  const second = release("r2");
  await after(LIMITS.storeAnswerMs - 1);
  const third = release("r3");
  await answer(0, "released");
  await after(1);
  expect([await first, await second]).toMatchObject(["released", { outcomeUnknown: true }]);
  await answer(1, WRONG);
  await answer(2, "released");
  expect([await third, ...sent()]).toEqual(["released", "r1", "r2,r3", "r3"]);
});

test("accounts go on without the one that somebody keeps locked, and each keeps the order of what was asked of it", async () => {
  const { sent, release, answer, after } = lanesOf();
  const locked = release("r1", "locked");
  const free = release("r2", "free");
  await settle();
  const later = release("r3", "locked");
  await answer(0, LOCKED);
  await answer(2, "released");
  const another = release("r4", "another");
  await settle();
  await answer(3, "released");
  expect([await free, await another]).toEqual(["released", "released"]);
  await answer(1, LOCKED);
  await after(LIMITS.storeBackoffMs);
  await answer(4, "released", "released");
  expect([await locked, await later]).toEqual(["released", "released"]);
  // What comes when nothing of the account waits any more goes with the others again.
  const last = [release("r5", "locked"), release("r6", "free")];
  await settle();
  await answer(5, "unknown", "unknown");
  expect(await Promise.all(last)).toEqual(["unknown", "unknown"]);
  expect(sent()).toEqual(["r1,r2", "r1,r3", "r2", "r4", "r1,r3", "r5,r6"]);
});

test("an account does not wait behind another one's group while a lane is free; its own writes stay in one lane", async () => {
  const { sent, release, answer } = lanesOf(2);
  const writes = [release("a1", "a"), release("b1", "b")];
  await settle();
  writes.push(release("a2", "a"), release("b2", "b"), release("c1", "c"), release("c2", "c"), release("d1", "d"));
  await settle();
  expect(sent()).toEqual(["a1", "b1"]);
  await answer(0, "released");
  // The third account found both lanes as long, the fourth the other one shorter.
  expect(sent()).toEqual(["a1", "b1", "a2,c1,c2"]);
  await answer(1, "released");
  expect(sent()).toEqual(["a1", "b1", "a2,c1,c2", "b2,d1"]);
  await answer(2, "released", "released", "released");
  await answer(3, "released", "released");
  expect(await Promise.all(writes)).toEqual(writes.map(() => "released"));
});
