/** Charges: what is held, for how long, and what is settled. */
import { expect, test } from "bun:test";
import { type Charge, Charges, type Effect, type HoldRequest } from "../../src/charge/charges.ts";
import { LIMITS } from "../../src/limits.ts";
import { serviceMetrics } from "../../src/service/ops/metrics.ts";
import { Failure } from "../../src/std/failure.ts";
import { StoreDown } from "../../src/store/store.ts";
import { type FakeStore, fakeStore, funded } from "../account/fake-store.ts";
import { FakeClock } from "../std/fake-clock.ts";

const RATES = { prompt: 3n, cachedPrompt: 1n, completion: 10n };

async function stand() {
  const store = fakeStore();
  await store.accounts.accountAdd(funded("a1", "one@example.org"));
  const clock = new FakeClock();
  const logged: string[] = [];
  const note = (event: string, facts: object = {}) => {
    logged.push(`${event} ${JSON.stringify(facts)}`);
  };
  const { metrics, clamped } = serviceMetrics();
  const clampedCount = async () => /^tendon_charges_clamped_total.*$/m.exec(await metrics.text())?.[0];
  const charges = new Charges({ store: store.charges, clock, log: { info: note, error: note }, clamped });
  return { store, clock, logged, clampedCount, charges };
}

async function held(charges: Charges, changes: Partial<HoldRequest> = {}): Promise<Charge> {
  const request = { chargeId: "c1", accountId: "a1", item: "llm-a", rates: RATES, deadlineMs: 10_000 };
  const charge = await charges.hold({ ...request, max: { promptTokens: 100, completionTokens: 30 }, ...changes });
  if (charge instanceof Failure) throw new Error(charge.message);
  return charge;
}

/** An effect that keeps nothing besides. */
function alone({ robot }: FakeStore): Effect<"kept" | "known" | "not_held"> {
  return (settlement) => robot.settleChunk({ ...settlement, session: undefined, observation: undefined });
}

test("usage is settled at its price, the rest of the hold is given back", async () => {
  const { store, charges, clampedCount } = await stand();
  const charge = await held(charges);
  expect(charge.held).toBe(600n);
  const usage = { promptTokens: 100, cachedTokens: 40, completionTokens: 30 };
  expect(await charges.settle(charge, usage, alone(store))).toBe("kept");
  expect(await store.accounts.accountById("a1")).toMatchObject({ settled: 520n, held: 0n });
  expect(await clampedCount()).toBeUndefined();
  expect(store.report()).toMatchObject({ sum: 0n, problem: undefined });
});

test("usage whose price is above the hold costs the hold, is logged and counted, and the ledger is sound", async () => {
  const { store, charges, clampedCount, logged } = await stand();
  const charge = await held(charges);
  const usage = { promptTokens: 100, cachedTokens: 0, completionTokens: 31 };
  expect(await charges.settle(charge, usage, alone(store))).toBe("kept");
  expect(await store.accounts.accountById("a1")).toMatchObject({ settled: 600n, held: 0n });
  expect(await store.charges.usageDays({ accountId: "a1", fromDay: 0 })).toMatchObject([
    { item: "llm-a", charges: 1, completionTokens: 31, cost: 600n },
  ]);
  expect(await clampedCount()).toBe('tendon_charges_clamped_total{item="llm-a"} 1');
  expect(logged).toEqual([expect.stringContaining('"price":"610","held":"600"')]);
  expect(store.report()).toMatchObject({ sum: 0n, problem: undefined });
});

test("a hold expires its own deadline and a grace after it was made", async () => {
  const { store, charges, clock } = await stand();
  await held(charges, { chargeId: "chunk", deadlineMs: 10_000 });
  await held(charges, { chargeId: "response", deadlineMs: 600_000 });
  const left = async (seconds: number) => {
    await store.charges.holdsExpire({ before: Math.floor(clock.unixMs() / 1000) + LIMITS.holdGraceSeconds + seconds });
    const account = await store.accounts.accountById("a1");
    return account && "held" in account ? account.held : undefined;
  };
  expect([await left(10), await left(11), await left(600), await left(601)]).toEqual([1_200n, 600n, 600n, 0n]);
});

test("a hold whose outcome is not known is released", async () => {
  const { store, charges } = await stand();
  const { hold } = store.charges;
  store.charges.hold = async (charge) => {
    await hold(charge);
    return new StoreDown("connection lost", true);
  };
  const failure = await charges.hold({
    chargeId: "c1",
    accountId: "a1",
    item: "llm-a",
    rates: RATES,
    max: { promptTokens: 1, completionTokens: 1 },
    deadlineMs: 1,
  });
  expect(failure).toMatchObject({ code: "billing_unavailable" });
  await Bun.sleep(0);
  expect(await store.accounts.accountById("a1")).toMatchObject({ held: 0n });
});
