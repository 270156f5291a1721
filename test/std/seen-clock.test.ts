/** Seen time: it begins where it is told to, goes on with the monotonic clock, and never goes back. */
import { expect, test } from "bun:test";
import { ServiceClock, seenSeconds, shownSeconds } from "../../src/std/seen-clock.ts";
import { FakeClock } from "./fake-clock.ts";

test("seen time goes on with the monotonic clock alone, from where the store says", () => {
  const wall = new FakeClock();
  const clock = new ServiceClock(wall);
  expect(clock.seenMs()).toBe(wall.unixMs());
  clock.begin(1_000);
  wall.advance(2_500);
  wall.jump(-86_400_000);
  expect([clock.seenMs(), seenSeconds(clock)]).toEqual([1_002_500, 1_002]);
  wall.jump(30 * 86_400_000);
  expect([clock.seenMs(), clock.unixMs(), clock.monotonicMs()]).toEqual([1_002_500, wall.unixMs(), wall.monotonicMs()]);
});

test("it takes on what another process has seen more of, and nothing less", () => {
  const wall = new FakeClock();
  const clock = new ServiceClock(wall);
  clock.begin(1_000);
  wall.advance(5_000);
  clock.reach(1_004);
  expect(clock.seenMs()).toBe(1_005_000);
  clock.reach(1_010);
  wall.advance(1_000);
  expect(clock.seenMs()).toBe(1_011_000);
});

test("a moment of seen time is shown as the wall clock shows it now", () => {
  const wall = new FakeClock(5_000_000_000);
  const clock = new ServiceClock(wall);
  clock.begin(1_000);
  expect(shownSeconds(clock, 1_060)).toBe(5_000_060);
  wall.advance(30_000);
  expect(shownSeconds(clock, 1_060)).toBe(5_000_060);
  wall.jump(-86_400_000);
  expect(shownSeconds(clock, 1_060)).toBe(5_000_060 - 86_400);
});
