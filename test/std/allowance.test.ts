/** What an owner may use within a moving window. */
import { expect, test } from "bun:test";
import { Allowance } from "../../src/std/allowance.ts";
import { FakeClock } from "./fake-clock.ts";

test("up to the limit nothing is said; from there on, how long to wait, which is true", () => {
  const clock = new FakeClock();
  const allowance = new Allowance(5_000, 60_000, clock);
  allowance.use("a", 4_999);
  expect(allowance.secondsToWait("a")).toBeUndefined();
  clock.advance(10_500);
  allowance.use("a", 1);
  const seconds = allowance.secondsToWait("a") ?? 0;
  expect(seconds).toBe(51);
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
