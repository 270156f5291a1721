/** Holds, settlements, usage: tests that hold for each engine (store.test.ts). */
import { expect } from "bun:test";
import { type EngineName, storeTest } from "../../store/engines.ts";
import { AT, addAccount, COST, expectSound, money, newCharge, settled } from "../../store/rows.ts";

const DECEMBER = { month: 202_612, day: 20_789 };

export function moneyTests(engine: EngineName): void {
  const test = storeTest(engine);

  test("a hold checks payment, credit and limit in this order, and settles once at its real cost", async (store) => {
    const { charges, robot } = store;
    await addAccount(store, { credit: 0n });
    expect(await charges.hold(newCharge("r0"))).toBe("payment_required");
    await charges.credit({ accountId: "a1", transferId: "t1", amount: 1_300n, at: AT, month: 202_611 });
    expect(await charges.hold(newCharge("r1"))).toBe("held");
    expect(await charges.hold(newCharge("r2"))).toBe("held");
    expect(await charges.hold(newCharge("r3"))).toBe("insufficient_credit");
    // A repeat after an answer that was lost.
    expect([await charges.hold(newCharge("r1")), await money(store)]).toMatchObject(["held", { held: 1_200n }]);
    expect([await robot.settleChunk(settled("r1")), await robot.settleChunk(settled("r1"))]).toEqual(["kept", "kept"]);
    expect(await charges.release({ chargeId: "r1", accountId: "a1" })).toBe("unknown");
    expect(await charges.release({ chargeId: "r2", accountId: "a2" })).toBe("unknown");
    expect(await charges.release({ chargeId: "r2", accountId: "a1" })).toBe("released");
    expect(await charges.release({ chargeId: "r2", accountId: "a1" })).toBe("unknown");
    expect(await robot.settleChunk(settled("r2"))).toBe("not_held");
    const left = { credits: 1_300n, settled: COST, held: 0n, month: 202_611, monthSettled: COST };
    expect(await money(store)).toEqual(left);
    expect(await charges.hold(newCharge("r4", { accountId: "a9" }))).toBe("account_unknown");
    await charges.hold(newCharge("r5", { amount: 519n }));
    expect(await robot.settleChunk(settled("r5"))).toBe("not_held");
    await expectSound(store);
  });

  test("a saved card alone does not fund usage; what costs nothing runs on it", async (store) => {
    await addAccount(store, { credit: 0n, paymentMethod: true });
    expect(await store.charges.hold(newCharge("r1"))).toBe("insufficient_credit");
    expect(await store.charges.hold(newCharge("r2", { amount: 0n }))).toBe("held");
  });

  test("the monthly limit counts what was settled in this month and what is held; a run is of the month of its submission", async (store) => {
    const { charges, robot } = store;
    await addAccount(store, { spendLimit: 1_200n });
    for (const id of ["r1", "r2"]) await charges.hold(newCharge(id));
    expect(await charges.hold(newCharge("r3"))).toBe("spend_limit_exceeded");
    await robot.settleChunk(settled("r1"));
    // 520 are settled in November, 600 are held: in December only those count.
    expect(await charges.hold(newCharge("r4"))).toBe("spend_limit_exceeded");
    expect(await charges.hold(newCharge("r5", DECEMBER))).toBe("held");
    for (const id of ["r5", "r2"]) await robot.settleChunk(settled(id));
    expect(await money(store)).toMatchObject({ settled: 3n * COST, month: 202_611, monthSettled: 2n * COST });
    await store.accounts.spendLimit({ accountId: "a1", limit: undefined });
    expect(await charges.hold(newCharge("r6", DECEMBER))).toBe("held");
    await expectSound(store);
  });

  test("whether an account could pay is told as a hold would be answered, and nothing is held for it", async (store) => {
    const { charges } = store;
    await addAccount(store);
    await addAccount(store, { id: "a2", credit: 0n });
    await addAccount(store, { id: "a3", spendLimit: 600n });
    await addAccount(store, { id: "a4", credit: 0n, paymentMethod: true });
    const seen = new Set<unknown>();
    for (const accountId of ["a1", "a2", "a3", "a4", "a9"]) {
      for (const amount of [0n, 600n, 601n, 10n ** 17n]) {
        for (const [index, when] of [{}, DECEMBER].entries()) {
          const charge = newCharge(`${accountId}-${amount}-${index}`, { accountId, amount, ...when });
          const told = await charges.affords({ accountId, amount, month: charge.month });
          const held = await charges.hold(charge);
          expect([accountId, amount, told]).toEqual([accountId, amount, held === "held" ? "affords" : held]);
          if (held === "held") await charges.release(charge);
          seen.add(told);
        }
      }
    }
    expect(seen.size).toBe(5);
    await expectSound(store);
  });

  test("a monthly limit follows the month that the clock shows now, whatever months it showed before", async (store) => {
    const { charges, robot } = store;
    // Two charges fit into a month: 520 and 600.
    await addAccount(store, { spendLimit: 1_200n });
    const november = {};
    const january = { month: 202_701, day: 20_820 };
    const spend = async (when: object, ...ids: readonly string[]) => {
      const outcomes = [];
      for (const id of ids) {
        const charge = newCharge(id, when);
        const told = await charges.affords(charge);
        const outcome = await charges.hold(charge);
        expect(told).toBe(outcome === "held" ? "affords" : outcome);
        if (outcome === "held") expect(await robot.settleChunk(settled(id))).toBe("kept");
        outcomes.push(outcome);
      }
      return outcomes;
    };
    const [held, over] = ["held", "spend_limit_exceeded"] as const;
    expect(await spend(november, "n1")).toEqual([held]);
    // The clock goes two months ahead, into a month in which nothing was spent.
    expect(await spend(january, "j1", "j2", "j3")).toEqual([held, held, over]);
    // It comes back: what November has cost counts again, and what January has cost does not.
    expect(await spend(november, "n2", "n3")).toEqual([held, over]);
    expect(await money(store)).toMatchObject({ settled: 4n * COST, month: 202_611, monthSettled: 2n * COST });
    // And so on, also for what was held before the clock went.
    expect(await charges.hold(newCharge("d1", { month: 202_612, day: 20_800 }))).toBe(held);
    expect(await spend(january, "j4")).toEqual([over]);
    await robot.settleChunk(settled("d1"));
    expect(await money(store)).toMatchObject({ month: 202_612, monthSettled: COST });
    expect([await spend(november, "n4"), await spend(january, "j5")]).toEqual([[over], [over]]);
    await expectSound(store);
  });

  test("charges of two months that are settled at once are each counted in their own", async (store) => {
    const { charges, robot, accounts } = store;
    await addAccount(store);
    const months = [{}, DECEMBER];
    const ids = Array.from({ length: 60 }, (_, index) => `r${index}`);
    await Promise.all(ids.map((id, index) => charges.hold(newCharge(id, months[index % 2]))));
    const outcomes = await Promise.all(ids.map((id) => robot.settleChunk(settled(id))));
    expect(new Set(outcomes)).toEqual(new Set(["kept"]));
    expect(await money(store)).toMatchObject({ settled: 60n * COST, held: 0n, monthSettled: 30n * COST });
    // Each month has the same amount left.
    for (const [left, outcome] of [
      [599n, "spend_limit_exceeded"],
      [600n, "held"],
    ] as const) {
      await accounts.spendLimit({ accountId: "a1", limit: 30n * COST + left });
      for (const when of months) {
        expect(await charges.hold(newCharge("last", when))).toBe(outcome);
        await charges.release({ chargeId: "last", accountId: "a1" });
      }
    }
    await expectSound(store);
  });

  test("a thousand holds at once on money for 137 give 137, and so does a limit", async (store) => {
    await addAccount(store, { credit: 137n * 600n + 599n });
    await addAccount(store, { id: "a2", spendLimit: 137n * 600n + 599n });
    const ids = Array.from({ length: 1_000 }, (_, index) => `r${index}`);
    const all = (accountId: string) =>
      Promise.all(ids.map((id) => store.charges.hold(newCharge(`${accountId}.${id}`, { accountId }))));
    const [one, two] = await Promise.all([all("a1"), all("a2")]);
    const count = (outcomes: readonly unknown[], wanted: string) => outcomes.filter((one) => one === wanted).length;
    expect([count(one, "held"), count(one, "insufficient_credit")]).toEqual([137, 863]);
    expect([count(two, "held"), count(two, "spend_limit_exceeded")]).toEqual([137, 863]);
    await expectSound(store);
  });

  test("holds of dead nodes expire, and nothing else does", async (store) => {
    for (const id of ["a1", "a2"]) await addAccount(store, { id });
    for (let index = 0; index < 300; index += 1) {
      const accountId = index % 2 === 0 ? "a1" : "a2";
      await store.charges.hold(newCharge(`r${index}`, { accountId, expiresAt: AT + index }));
    }
    await store.robot.settleChunk(settled("r0"));
    expect(await store.charges.holdsExpire({ before: AT + 290 })).toBe("more");
    expect(await store.charges.holdsExpire({ before: AT + 290 })).toBe("done");
    expect([(await money(store)).held, (await money(store, "a2")).held]).toEqual([3_000n, 3_000n]);
    expect(await store.robot.settleChunk(settled("r2"))).toBe("not_held");
    await expectSound(store);
  });

  test("usage is summed by day and model, and old runs into one entry per account and month", async (store) => {
    const { charges, robot } = store;
    await addAccount(store);
    for (let index = 0; index < 10; index += 1) {
      await charges.hold(newCharge(`r${index}`, index < 4 ? {} : { item: "m2", day: 20_776 }));
      await robot.settleChunk(settled(`r${index}`, { at: AT + index }));
    }
    const day = { charges: 4, promptTokens: 400, cachedTokens: 160, completionTokens: 120, cost: 4n * COST };
    const later = { charges: 6, promptTokens: 600, cachedTokens: 240, completionTokens: 180, cost: 6n * COST };
    const expected = [
      { day: 20_775, item: "m1", ...day },
      { day: 20_776, item: "m2", ...later },
    ];
    expect(await charges.usageDays({ accountId: "a1", fromDay: 0 })).toEqual(expected);
    expect(await charges.usageDays({ accountId: "a1", fromDay: 20_776 })).toEqual(expected.slice(1));
    expect(await charges.ledgerCheck()).toMatchObject({ entries: 22n });
    for (const before of [AT + 3, AT + 5, AT + 5]) expect(await charges.usageForget({ before })).toBe("done");
    // Left are five runs of ten, one transfer that is the sum of the others, and the two entries of the credit.
    expect(await charges.ledgerCheck()).toEqual({ entries: 14n, sum: 0n, problem: undefined });
    expect(await charges.usageDays({ accountId: "a1", fromDay: 0 })).toEqual(expected);
    expect(await money(store)).toMatchObject({ settled: 10n * COST, monthSettled: 10n * COST });
  });

  test("what costs its hold although its usage is worth more is sound; any other cost is not", async (store) => {
    await addAccount(store);
    const usage = { promptTokens: 100, cachedTokens: 0, completionTokens: 40 };
    await store.charges.hold(newCharge("r1"));
    expect(await store.robot.settleChunk(settled("r1", { usage, cost: 600n }))).toBe("kept");
    await expectSound(store);
    await store.charges.hold(newCharge("r2"));
    expect(await store.robot.settleChunk(settled("r2", { usage, cost: 599n }))).toBe("kept");
    const problem = "charge r2: it cost 599, its usage at its rates is 700, and 600 were held";
    expect(await store.charges.ledgerCheck()).toMatchObject({ problem });
  });
}
