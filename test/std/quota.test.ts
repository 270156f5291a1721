/** Permits in all and of one owner, and the amount that an owner may use within a moving window. */
import { expect, test } from "bun:test";
import { Allowance, Permits } from "../../src/std/quota.ts";
import { FakeClock } from "./fake-clock.ts";

test("up to the limit nothing is said; from there on, how long to wait, which is true", () => {
  const clock = new FakeClock();
  const allowance = new Allowance(5_000, 60_000, clock);
  allowance.use("a", 4_999);
  expect(allowance.secondsToWait("a")).toBeUndefined();
  clock.advance(10_500);
  allowance.use("a", 1);
  const seconds = allowance.secondsToWait("a") ?? 0;
  expect(seconds).toBe(50);
  clock.advance((seconds - 1) * 1000);
  expect(allowance.secondsToWait("a")).toBe(1);
  clock.advance(1000);
  expect(allowance.secondsToWait("a")).toBeUndefined();
});

test("within any window there is at most the limit, whenever it was used", () => {
  const clock = new FakeClock();
  const allowance = new Allowance(60, 60_000, clock);
  const used: [ms: number, amount: number][] = [];
  for (let step = 0; step < 600; step += 1) {
    clock.advance(337);
    if (allowance.secondsToWait("a") !== undefined) continue;
    allowance.use("a", 7);
    used.push([clock.monotonicMs(), 7]);
  }
  for (const [fromMs] of used) {
    const inside = used.filter(([ms]) => ms >= fromMs && ms < fromMs + 60_000);
    // The last use may go past the limit.
    expect(inside.reduce((sum, [, amount]) => sum + amount, 0)).toBeLessThan(60 + 7);
  }
  expect(used.length).toBeGreaterThan(9);
});

test("what one owner uses is no other's, and owners that use nothing are forgotten", () => {
  const clock = new FakeClock();
  const allowance = new Allowance(10, 60_000, clock);
  for (let owner = 0; owner < 3_000; owner += 1) {
    clock.advance(1_000);
    allowance.use(`owner ${owner}`, 10);
  }
  expect(allowance.size).toBeLessThan(1_024 + 62);
  expect(allowance.secondsToWait("owner 2999")).toBeGreaterThan(0);
  expect([allowance.secondsToWait("owner 2900"), allowance.secondsToWait("nobody")]).toEqual([undefined, undefined]);
});

test("takes of one owner up to the limit; a take that is given back does not count", () => {
  const clock = new FakeClock();
  const tries = new Allowance(2, 60_000, clock);
  expect([tries.take("a"), tries.take("a"), tries.take("b")]).toEqual([undefined, undefined, undefined]);
  clock.advance(10_500);
  expect([tries.take("a"), tries.take("b")]).toEqual([50, undefined]);
  tries.giveBack("a");
  expect([tries.take("a"), tries.take("a")]).toEqual([undefined, 50]);
  clock.advance(49_500);
  expect(tries.take("a")).toBeUndefined();
});

test("the number of owners in memory is bounded", () => {
  const tries = new Allowance(1, 60_000, new FakeClock());
  for (let at = 0; at < 50_000; at += 1) tries.take(`n${at}`);
  expect(tries.size).toBe(10_000);
  expect([tries.take("n49999"), tries.take("n0")]).toEqual([60, undefined]);
});

test("permits are bounded in all and of each owner, and returned once", () => {
  const permits = new Permits(3, 2);
  const [a, b] = [permits.take("a"), permits.take("a")];
  expect([typeof a, typeof b, permits.take("a")]).toEqual(["function", "function", "owner"]);
  const c = permits.take("c");
  expect([typeof c, permits.take("d"), permits.size]).toEqual(["function", "all", 3]);
  if (typeof a === "string") throw new Error("there is a permit");
  a();
  a();
  expect(permits.size).toBe(2);
  expect(typeof permits.take("a")).toBe("function");
});

test("many permits at once: all of them or none", () => {
  const permits = new Permits(100, 75);
  expect([permits.add("a", 76), permits.add("a", 75), permits.add("b", 26), permits.add("b", 25)]).toEqual([
    "owner",
    undefined,
    "all",
    undefined,
  ]);
  permits.subtract("a", 75);
  expect([permits.size, permits.add("b", 50)]).toEqual([25, undefined]);
  for (const count of [Number.NaN, -1, 0.5, 2 ** 53]) expect(() => permits.add("a", count)).toThrow("whole number");
  expect(() => permits.subtract("a", 1)).toThrow("no more permits");
});
