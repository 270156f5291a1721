/** Values that are made while they are written. */
import { expect, test } from "bun:test";
import { allOf, given, rounded, type Source, sideBySide, streamed } from "../../src/bundle/values.ts";
import { Weights } from "../../src/bundle/weights.ts";
import { RandomStream } from "../../src/std/random.ts";

/** 0, 1, 2 … from `first` on. */
function counting(first: number): () => Source {
  return () => {
    let next = first;
    return (target) => {
      for (let at = 0; at < target.length; at += 1) target[at] = next++;
    };
  };
}

function floats(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
}

test("a bfloat16 is the nearest to its float32, ties to the even one, and keeps what it can hold", () => {
  const widened = (half: number) => new Float32Array(Uint32Array.of(half << 16).buffer)[0] ?? Number.NaN;
  // 1 + 2^-8 lies in the middle of 1 and 1 + 2^-7, whose last bit is odd; 1 + 3 · 2^-8 in the middle of an odd and an even one.
  const cases = [
    [0, 0],
    [-0, -0],
    [1, 1],
    [1 + 2 ** -8, 1],
    [1 + 2 ** -8 + 2 ** -20, 1 + 2 ** -7],
    [1 + 3 * 2 ** -8, 1 + 2 ** -6],
    [-(1 + 3 * 2 ** -8), -(1 + 2 ** -6)],
    [2 - 2 ** -23, 2],
  ] as const;
  const halves = rounded(Float32Array.from(cases, ([value]) => value));
  expect([...halves].map(widened)).toEqual(cases.map(([, half]) => half));
  const stream = new RandomStream("halves");
  const values = Float32Array.from({ length: 5000 }, () => stream.signed() * 2 ** (stream.word() % 40));
  for (const [at, half] of rounded(values).entries()) {
    const value = values[at] ?? Number.NaN;
    const off = Math.abs(widened(half) - value);
    expect(off).toBeLessThanOrEqual(Math.abs(widened((half + 1) & 0xffff) - value));
    expect(off).toBeLessThanOrEqual(Math.abs(widened((half - 1) & 0xffff) - value));
  }
});

test("values come in pieces of a bounded size, the same at each call", () => {
  const count = 600_000;
  const values = streamed("count", count, "f32", counting(0));
  expect([values.bytes, values.key]).toEqual([4 * count, "f32 count"]);
  const sizes = [...values.pieces()].map(({ length }) => length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1 << 20);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(values.bytes);
  expect(floats(allOf(values))).toEqual(Float32Array.from({ length: count }, (_, at) => at));
  expect(allOf(values)).toEqual(allOf(values));
  expect(allOf(given(Uint8Array.of(1, 2)))).toEqual(Uint8Array.of(1, 2));
  expect(streamed("count", count, "bf16", counting(0)).bytes).toBe(2 * count);
});

test("matrices side by side have the rows of each, also where a row is longer than a piece", () => {
  const values = sideBySide("two", 3, "f32", [
    { columns: 2, begin: counting(0) },
    { columns: 1, begin: counting(100) },
  ]);
  expect([...floats(allOf(values))]).toEqual([0, 1, 100, 2, 3, 101, 4, 5, 102]);
  const wide = sideBySide("wide", 2, "bf16", [{ columns: 300_000, begin: () => (target) => target.fill(1) }]);
  expect([...wide.pieces()].map(({ length }) => length)).toEqual([600_000, 600_000]);
});

test("a weight that is made later has the values of the one that is made at once", () => {
  const weights = new Weights(7, "bf16");
  const spread = { fanIn: 3, gain: 2, offsets: [1, 0, -1] };
  const now = weights.uniform("a", [30, 7], spread);
  expect(floats(allOf(weights.later("a", [30, 7], spread, "f32")))).toEqual(now);
  const half = allOf(weights.later("a", [30, 7], spread, "bf16"));
  expect(new Uint16Array(half.buffer)).toEqual(rounded(now));
  // Its key tells it from every other weight of the bundle.
  const key = (name: string, dims: number[], gain: number) => weights.later(name, dims, { fanIn: 3, gain }, "f32").key;
  const keys = [key("a", [30, 7], 2), key("b", [30, 7], 2), key("a", [7, 30], 2), key("a", [30, 7], 1)];
  expect(new Set(keys).size).toBe(4);
});
