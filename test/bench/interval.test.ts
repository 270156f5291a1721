import { expect, test } from "bun:test";
import { type Pair, ratioOf } from "../../bench/ab/interval.ts";
import { RandomStream } from "../../src/std/random.ts";

const mean = (turns: readonly number[]) => turns.reduce((sum, one) => sum + one, 0) / turns.length;

/** Five rounds of twenty turns around 10, the changed commit `times` as slow, both within 5 %. */
function rounds(times: number): Pair<number>[][] {
  const noise = new RandomStream("noise");
  const value = (middle: number) => middle * (1 + noise.signed() / 20);
  const turn = () => ({ base: value(10), changed: value(10 * times) });
  return Array.from({ length: 5 }, () => Array.from({ length: 20 }, turn));
}

test("the interval holds 1 for two alike and leaves it out for one that is 10 % slower", () => {
  const alike = ratioOf(rounds(1), mean, new RandomStream("a"));
  expect(alike.low).toBeLessThan(1);
  expect(alike.high).toBeGreaterThan(1);
  expect(alike.base).toBeCloseTo(10, 0);
  const slower = ratioOf(rounds(1.1), mean, new RandomStream("a"));
  expect(slower.low).toBeGreaterThan(1.05);
  expect(slower.high).toBeLessThan(1.15);
  expect(slower.ratio).toBeCloseTo(slower.changed / slower.base, 1);
});

test("what both sides share leaves the ratio alone: a machine that gets slower is no difference", () => {
  const slowing = Array.from({ length: 5 }, (_, round) =>
    Array.from({ length: 10 }, (__, turn) => ({ base: 1 + round + turn, changed: 2 * (1 + round + turn) })),
  );
  const { ratio, low, high } = ratioOf(slowing, mean, new RandomStream("b"));
  expect([ratio, low, high]).toEqual([2, 2, 2]);
});
