/** Group commit for PostgreSQL while the server says nothing: everybody who waits is told in time what is known. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { Lane, Lanes } from "../../../src/store/postgres/lane.ts";
import { Unanswered } from "../../../src/store/postgres/pool.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { settle } from "../../robot/http/outcome.ts";
import { FakeClock } from "../../std/fake-clock.ts";

type Rows = readonly Record<string, unknown>[] | Unanswered;

/** Lanes, and the groups that they sent; each waits for the test to answer it. */
function lanesOf(clock: FakeClock, count = 1) {
  const groups: { runs: string[]; answer: (rows: Rows) => void }[] = [];
  const rows = (_text: string, [orders]: readonly (string | boolean)[]): Promise<Rows> => {
    const { promise, resolve } = Promise.withResolvers<Rows>();
    const runs = (JSON.parse(String(orders)) as { chargeId: string }[]).map(({ chargeId }) => chargeId);
    groups.push({ runs, answer: resolve });
    return promise;
  };
  const lanes = new Lanes(count, () => new Lane({ pool: { rows }, apart: { rows } }, clock, "apply", true));
  const release = (chargeId: string, accountId = "a") => {
    const order = { order: "charges.release", accountId, chargeId };
    return lanes.write(order);
  };
  return { groups, release };
}

const SILENT = new Unanswered("silent", true);
const REFUSED = new Unanswered("refused", false);

test("who waits behind a group without an answer is told as soon as its members, and that nothing was done", async () => {
  const clock = new FakeClock();
  const { groups, release } = lanesOf(clock);
  const first = release("r1");
  await settle();
  clock.advance(LIMITS.storeAnswerMs - 1);
  const second = release("r2");
  clock.advance(1);
  expect(await first).toMatchObject({ outcomeUnknown: true });
  clock.advance(LIMITS.storeAnswerMs - 1);
  expect(await second).toMatchObject({ outcomeUnknown: false });
  // Nobody waits for them any more: they are not sent again, and the next one is.
  groups[0]?.answer(SILENT);
  await settle();
  const third = release("r3");
  clock.advance(LIMITS.storeBackoffMs);
  await settle();
  groups[1]?.answer([{ outcomes: ["released"] }]);
  expect([await third, groups.map(({ runs }) => runs)]).toEqual(["released", [["r1"], ["r3"]]]);
});

test("a group that got no answer is sent again together with what came meanwhile", async () => {
  const clock = new FakeClock();
  const { groups, release } = lanesOf(clock);
  const first = release("r1");
  await settle();
  const second = release("r2");
  groups[0]?.answer(SILENT);
  await settle();
  clock.advance(LIMITS.storeBackoffMs);
  await settle();
  groups[1]?.answer([{ outcomes: ["released", "unknown"] }]);
  expect([await first, await second, groups[1]?.runs]).toEqual(["released", "unknown", ["r1", "r2"]]);
});

test("what was never sent is known not to be done; after one try without an answer nobody knows", async () => {
  for (const [tries, outcomeUnknown] of [
    [[REFUSED, REFUSED], false],
    [[SILENT, REFUSED], true],
  ] as const) {
    const clock = new FakeClock();
    const { groups, release } = lanesOf(clock);
    const outcome = release("r1");
    await settle();
    for (const [index, failure] of tries.entries()) {
      groups[index]?.answer(failure);
      await settle();
      if (index + 1 < tries.length) clock.advance(LIMITS.storeBackoffMs);
      await settle();
    }
    clock.advance(LIMITS.storeAnswerMs);
    expect(await outcome).toEqual(new StoreDown("refused", outcomeUnknown));
  }
});

test("an order that the database will never take is told so at once, and takes no other one of its group with it", async () => {
  const clock = new FakeClock();
  const { groups, release } = lanesOf(clock);
  const orders = [release("r1"), release("r2"), release("r3")];
  await settle();
  const wrong = new Unanswered("22003: out of range", false, "order");
  groups[0]?.answer(wrong);
  for (const [index, outcome] of [[{ outcomes: ["released"] }], wrong, [{ outcomes: ["unknown"] }]].entries()) {
    await settle();
    groups[index + 1]?.answer(outcome);
  }
  expect(await Promise.all(orders)).toMatchObject(["released", { outcomeUnknown: false }, "unknown"]);
  expect(groups.map(({ runs }) => runs)).toEqual([["r1", "r2", "r3"], ["r1"], ["r2"], ["r3"]]);
});

test("an order that is over is not sent any more when its group is taken apart", async () => {
  const clock = new FakeClock();
  const { groups, release } = lanesOf(clock);
  const first = release("r1");
  await settle();
  const second = release("r2");
  clock.advance(LIMITS.storeAnswerMs - 1);
  const third = release("r3");
  groups[0]?.answer([{ outcomes: ["released"] }]);
  await settle();
  clock.advance(1);
  expect([await first, await second]).toMatchObject(["released", { outcomeUnknown: true }]);
  groups[1]?.answer(new Unanswered("22003: out of range", false, "order"));
  await settle();
  groups[2]?.answer([{ outcomes: ["released"] }]);
  expect([await third, groups.map(({ runs }) => runs)]).toEqual(["released", [["r1"], ["r2", "r3"], ["r3"]]]);
});

test("accounts go on without the one that somebody keeps locked, and each keeps the order of what was asked of it", async () => {
  const clock = new FakeClock();
  const { groups, release } = lanesOf(clock);
  const locked = release("r1", "locked");
  const free = release("r2", "free");
  await settle();
  const later = release("r3", "locked");
  groups[0]?.answer(new Unanswered("55P03: lock not available", false, "lock"));
  await settle();
  groups[2]?.answer([{ outcomes: ["released"] }]);
  const another = release("r4", "another");
  await settle();
  groups[3]?.answer([{ outcomes: ["released"] }]);
  expect([await free, await another]).toEqual(["released", "released"]);
  groups[1]?.answer(new Unanswered("55P03: lock not available", false, "lock"));
  await settle();
  clock.advance(LIMITS.storeBackoffMs);
  await settle();
  groups[4]?.answer([{ outcomes: ["released", "released"] }]);
  expect([await locked, await later]).toEqual(["released", "released"]);
  // What comes when nothing of the account waits any more goes with the others again.
  const last = [release("r5", "locked"), release("r6", "free")];
  await settle();
  groups[5]?.answer([{ outcomes: ["unknown", "unknown"] }]);
  expect(await Promise.all(last)).toEqual(["unknown", "unknown"]);
  expect(groups.map(({ runs }) => runs)).toEqual([
    ["r1", "r2"],
    ["r1", "r3"],
    ["r2"],
    ["r4"],
    ["r1", "r3"],
    ["r5", "r6"],
  ]);
});

test("an account does not wait behind another one's group while a lane is free; its own writes stay in one lane", async () => {
  const { groups, release } = lanesOf(new FakeClock(), 2);
  const writes = [release("a1", "a"), release("b1", "b")];
  await settle();
  writes.push(release("a2", "a"), release("b2", "b"), release("c1", "c"), release("c2", "c"), release("d1", "d"));
  await settle();
  const sent = () => groups.map(({ runs }) => runs.join());
  expect(sent()).toEqual(["a1", "b1"]);
  groups[0]?.answer([{ outcomes: ["released"] }]);
  await settle();
  // The third account found both lanes as long, the fourth the other one shorter.
  expect(sent()).toEqual(["a1", "b1", "a2,c1,c2"]);
  groups[1]?.answer([{ outcomes: ["released"] }]);
  await settle();
  expect(sent()).toEqual(["a1", "b1", "a2,c1,c2", "b2,d1"]);
  groups[2]?.answer([{ outcomes: ["released", "released", "released"] }]);
  groups[3]?.answer([{ outcomes: ["released", "released"] }]);
  expect(await Promise.all(writes)).toEqual(writes.map(() => "released"));
});
