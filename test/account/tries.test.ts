/** What one network may try in vain before it is refused unread. */
import { expect, test } from "bun:test";
import { Tries } from "../../src/account/tries.ts";
import { FakeClock } from "../std/fake-clock.ts";

test("so many tries in a window, each network for itself; a try that was right does not count", () => {
  const clock = new FakeClock();
  const tries = new Tries(clock, 2, 60);
  expect([tries.take("a"), tries.take("a"), tries.take("b")]).toEqual([undefined, undefined, undefined]);
  clock.advance(10_500);
  expect([tries.take("a"), tries.take("b")]).toEqual([50, undefined]);
  tries.giveBack("a");
  expect([tries.take("a"), tries.take("a")]).toEqual([undefined, 50]);
  clock.advance(49_500);
  expect(tries.take("a")).toBeUndefined();
});

test("however many networks come, the memory is bounded", () => {
  const tries = new Tries(new FakeClock(), 1, 60);
  for (let at = 0; at < 50_000; at += 1) tries.take(`n${at}`);
  expect(tries.size).toBe(10_000);
  expect([tries.take("n49999"), tries.take("n0")]).toEqual([60, undefined]);
});
