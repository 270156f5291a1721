import { expect, test } from "bun:test";
import { Histogram, RELATIVE_ERROR } from "../../src/measure/histogram.ts";
import { percentile } from "../../src/measure/stats.ts";
import { RandomStream } from "../../src/std/random.ts";

const PERCENTS = [1, 10, 50, 90, 99, 99.9, 99.99, 100];

/** Milliseconds over six powers of ten, each as frequent as the others. */
function latencies(count: number, key: string): number[] {
  const random = new RandomStream(key);
  return Array.from({ length: count }, () => 10 ** (-2 + (6 * random.word()) / 2 ** 32));
}

function expectClose(shown: number, exact: number): void {
  // Half a microsecond: the values are whole microseconds inside.
  expect(Math.abs(shown - exact)).toBeLessThanOrEqual(exact * RELATIVE_ERROR + 0.0005);
}

test("every percentile is within the relative error of the exact one, from 10 microseconds to 10 seconds", () => {
  const values = latencies(50_000, "histogram");
  const sorted = values.toSorted((a, b) => a - b);
  const histogram = Histogram.of(values);
  for (const percent of PERCENTS) expectClose(histogram.percentile(percent), percentile(sorted, percent));
  expect(histogram.count).toBe(50_000);
  expect(histogram.maxMs).toBe(sorted.at(-1) ?? 0);
});

test("each value alone keeps its precision: no gap between two buckets", () => {
  for (let us = 1; us < 200_000_000; us = Math.ceil(us * 1.003)) {
    const ms = us / 1000;
    // With a greater and a smaller value beside it, so that the exact ends say nothing.
    expectClose(Histogram.of([0, ms, 1_000_000]).percentile(50), ms);
  }
});

test("the distribution rises in share and in latency, and ends with the exact greatest value", () => {
  const points = Histogram.of(latencies(2_000, "points")).points();
  for (const [index, point] of points.entries()) {
    const before = points[index - 1];
    if (before === undefined) continue;
    expect(point.share).toBeGreaterThan(before.share);
    expect(point.ms).toBeGreaterThanOrEqual(before.ms);
  }
  expect(points.at(-1)?.share).toBe(1);
});

test("nothing recorded has no figures; what is beyond the range still counts and is the exact maximum", () => {
  const empty = new Histogram();
  expect(empty.percentile(50)).toBeNaN();
  expect(empty.maxMs).toBeNaN();
  expect(empty.points()).toEqual([]);
  const far = Histogram.of([1, 2, 3e6]);
  expect(far.percentile(99)).toBe(3e6);
  expect(Histogram.of([-0.001]).percentile(50)).toBe(-0.001);
});
