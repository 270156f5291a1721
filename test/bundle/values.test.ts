/** Values that are made while they are written. */
import { expect, test } from "bun:test";
import { RandomWeights } from "../../src/bundle/random-weights.ts";
import { allOf, given, keptAs, rounded, type Source, sideBySide, streamed } from "../../src/bundle/values.ts";
import { DEFAULT_BUILD } from "../../src/bundle/weights.ts";
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

test("an f16 is the nearest to its float32, ties to the even one, and each f16 but a NaN keeps its bits", () => {
  const bits = (values: readonly number[]) => {
    const { buffer } = keptAs("f16", Float32Array.from(values));
    return [...new Uint16Array(buffer)];
  };
  // IEEE 754 by hand: 10 bits of mantissa, exponents from -14, below them steps of 2^-24.
  const widened = (half: number) => {
    const [sign, exponent, mantissa] = [half >> 15 ? -1 : 1, (half >> 10) & 31, half & 1023];
    if (exponent === 31) return mantissa === 0 ? sign * Infinity : Number.NaN;
    return sign * (exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25));
  };
  const all = Array.from({ length: 1 << 16 }, (_, half) => half).filter((half) => !Number.isNaN(widened(half)));
  expect(all).toHaveLength((1 << 16) - 2 * 1023);
  expect(bits(all.map(widened))).toEqual(all);
  expect([...new Float16Array(Uint16Array.from(all).buffer)]).toEqual(all.map(widened));
  // The middle between two neighbours goes to the even one; next to it, to the nearer one. Both are exact in float32.
  const positive = all.filter((half) => half < 0x7bff);
  const middle = positive.map((half) => (widened(half) + widened(half + 1)) / 2);
  expect(bits(middle)).toEqual(positive.map((half) => half + (half & 1)));
  expect(bits(middle.map((value) => value * (1 + 2 ** -20)))).toEqual(positive.map((half) => half + 1));
  expect(bits(middle.map((value) => -value * (1 - 2 ** -20)))).toEqual(positive.map((half) => half | 0x8000));
  // The largest one ends where the next would begin.
  expect(bits([65519.996, 65520, 1e30, -1e30, 2 ** -25, 2 ** -25 * 1.001])).toEqual([
    0x7bff, 0x7c00, 0x7c00, 0xfc00, 0, 1,
  ]);
});

test("each bfloat16 that is a number keeps its bits", () => {
  const all = Uint16Array.from({ length: 1 << 16 }, (_, half) => half).filter((half) => (half & 0x7f80) !== 0x7f80);
  const widened = new Float32Array(Uint32Array.from(all, (half) => half << 16).buffer);
  expect(rounded(widened)).toEqual(all);
  expect(keptAs("bf16", widened)).toEqual(all);
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
  const weights = new RandomWeights(7, { ...DEFAULT_BUILD, precision: "bf16" });
  const spread = { fanIn: 3, gain: 2, offsets: [1, 0, -1] };
  const now = weights.whole("a", [30, 7], spread);
  expect(floats(allOf(weights.later("a", [30, 7], spread, "f32")))).toEqual(now);
  const half = allOf(weights.later("a", [30, 7], spread, "bf16"));
  expect(new Uint16Array(half.buffer)).toEqual(rounded(now));
  // Its key tells it from every other weight of the bundle.
  const key = (name: string, dims: number[], gain: number) => weights.later(name, dims, { fanIn: 3, gain }, "f32").key;
  const keys = [key("a", [30, 7], 2), key("b", [30, 7], 2), key("a", [7, 30], 2), key("a", [30, 7], 1)];
  expect(new Set(keys).size).toBe(4);
});
