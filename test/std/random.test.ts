/** Seeded random numbers: a row of them is the same as one after the other. */
import { expect, test } from "bun:test";
import { RandomStream } from "../../src/std/random.ts";

test("numbers written over an array are those that are drawn one by one, in whatever pieces", () => {
  const [one, pieces] = [new RandomStream("key"), new RandomStream("key")];
  const expected = Float32Array.from({ length: 1000 }, () => 0.25 + 3 * one.signed());
  const values = new Float32Array(1000);
  for (const [from, to] of [
    [0, 1],
    [1, 600],
    [600, 600],
    [600, 1000],
  ])
    pieces.spread(values.subarray(from, to), 0.25, 3);
  expect(values).toEqual(expected);
  // Both go on alike.
  expect(pieces.word()).toBe(one.word());
});
