import { expect, test } from "bun:test";
import { systemClock } from "../../src/std/clock.ts";
import { atOnce, inSlices, type Steps } from "../../src/std/slices.ts";

/** Busy for 20 ms in steps of some microseconds; counts them. */
function* busy(): Steps<number> {
  const endMs = systemClock.monotonicMs() + 20;
  for (let steps = 1; ; steps += 1) {
    const untilMs = systemClock.monotonicMs() + 0.01;
    while (systemClock.monotonicMs() < untilMs);
    if (systemClock.monotonicMs() >= endMs) return steps;
    yield;
  }
}

test("long work lets others have a turn in between, and every slice of it is timed", async () => {
  let [turns, slices, ended] = [0, 0, false];
  const other = () => {
    turns += 1;
    if (!ended) setImmediate(other);
  };
  setImmediate(other);
  const steps = await inSlices(busy(), (slice) => {
    slices += 1;
    return slice();
  });
  ended = true;
  expect(steps).toBeGreaterThan(0);
  expect(slices).toBeGreaterThan(1);
  expect(turns).toBeGreaterThanOrEqual(slices - 1);
});

test("an error of a step is the work's", async () => {
  // biome-ignore lint/correctness/useYield: its first step throws.
  const fails = function* (): Steps<void> {
    throw new Error("wrong");
  };
  expect(inSlices(fails())).rejects.toThrow("wrong");
  expect(() => atOnce(fails())).toThrow("wrong");
});
