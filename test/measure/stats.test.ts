import { expect, test } from "bun:test";
import { median, percentile, summary } from "../../src/measure/stats.ts";

test("a percentile is a measured value, by nearest rank", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
  for (const [percent, value] of [
    [50, 50],
    [99, 99],
    [99.9, 100],
    [100, 100],
  ] as const)
    expect([percent, percentile(hundred, percent)]).toEqual([percent, value]);
  expect([percentile([7], 50), percentile([1, 2], 50), percentile([], 50)]).toEqual([7, 1, Number.NaN]);
  // In spite of rounding errors.
  const thousand = Array.from({ length: 1000 }, (_, index) => index + 1);
  expect(percentile(thousand, 99.9)).toBe(999);
});

test("a summary does not need sorted values and does not sort the caller's", () => {
  const values = [3, 1, 2, 10];
  expect(summary(values)).toEqual({ count: 4, p50: 2, p90: 10, p99: 10, max: 10 });
  expect(values).toEqual([3, 1, 2, 10]);
  expect(median([5, 1, 3])).toBe(3);
});
