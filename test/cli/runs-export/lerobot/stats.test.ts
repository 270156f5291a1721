import { expect, test } from "bun:test";
import { statsOf, together } from "../../../../src/cli/runs-export/lerobot/stats.ts";

test("each dimension has its range, mean, deviation and quantiles between the nearest values", () => {
  const stats = statsOf([
    [1, 5],
    [2, 5],
    [3, 5],
    [4, 5],
  ]);
  expect(stats).toMatchObject({ min: [1, 5], max: [4, 5], mean: [2.5, 5], q50: [2.5, 5], count: [4] });
  expect(stats.std[0]).toBeCloseTo(Math.sqrt(1.25), 12);
  expect(stats.q10[0]).toBeCloseTo(1.3, 12);
  expect(statsOf([[7]])).toMatchObject({ min: [7], max: [7], mean: [7], std: [0], q01: [7], q99: [7], count: [1] });
});

test("episodes together have the mean and deviation of all their rows, and quantiles weighted by rows", () => {
  const [one, two] = [
    [[0], [2]],
    [[4], [6], [8], [10]],
  ];
  const all = statsOf([...one, ...two]);
  const both = together([statsOf(one), statsOf(two)]);
  expect(both).toMatchObject({ min: all.min, max: all.max, count: [6] });
  expect(both.mean[0]).toBeCloseTo(all.mean[0] ?? 0, 12);
  expect(both.std[0]).toBeCloseTo(all.std[0] ?? 0, 12);
  expect(both.q50[0]).toBeCloseTo((1 * 2 + 7 * 4) / 6, 12);
});
