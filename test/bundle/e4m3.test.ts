/** FLOAT8E4M3FN: all of its numbers by the definition, and which of them a float32 becomes. */
import { expect, test } from "bun:test";
import { e4m3 } from "../../src/bundle/e4m3.ts";
import { present } from "../../src/std/assert.ts";
import { RandomStream } from "../../src/std/random.ts";

/** The number of a code: sign, four bits of exponent with bias 7, three of mantissa; no infinity, and 0x7f and 0xff are NaN. */
function e4m3Number(code: number): number {
  const [sign, exponent, mantissa] = [code >> 7 ? -1 : 1, (code >> 3) & 15, code & 7];
  if (exponent === 15 && mantissa === 7) return Number.NaN;
  return sign * (exponent === 0 ? mantissa * 2 ** -9 : (8 + mantissa) * 2 ** (exponent - 10));
}

const CODES = Array.from({ length: 256 }, (_, code) => code);
const numbers = CODES.filter((code) => !Number.isNaN(e4m3Number(code)));
const codesOf = (values: readonly number[]) => [...e4m3(Float32Array.from(values))];

test("each of the 254 numbers keeps its code, zeros their sign", () => {
  expect(numbers).toHaveLength(254);
  expect(codesOf(numbers.map(e4m3Number))).toEqual(numbers);
});

test("the numbers that the published format names are those of these codes", () => {
  const named = [0x00, 0x01, 0x07, 0x08, 0x38, 0x3c, 0x7e, 0x80, 0xfe];
  expect(named.map(e4m3Number)).toEqual([0, 2 ** -9, 7 * 2 ** -9, 2 ** -6, 1, 1.5, 448, -0, -448]);
});

test("the middle of two neighbours becomes the even code, and what is next to it the nearer one", () => {
  const positive = numbers.filter((code) => code < 0x7e);
  for (const code of positive) {
    const middle = (e4m3Number(code) + e4m3Number(code + 1)) / 2;
    const even = code % 2 === 0 ? code : code + 1;
    const aside = middle * 2 ** -20;
    expect([code, ...codesOf([middle, middle - aside, middle + aside])]).toEqual([code, even, code, code + 1]);
    expect([code, ...codesOf([-middle, -middle - aside])]).toEqual([code, even | 0x80, (code + 1) | 0x80]);
  }
});

test("what is larger than the largest number becomes it, and what is smaller than half of the smallest zero", () => {
  expect(codesOf([449, 463, 464, 465, 480, 1e9, 3e38])).toEqual(Array(7).fill(0x7e));
  expect(codesOf([-449, -480, -3e38])).toEqual(Array(3).fill(0xfe));
  expect(codesOf([2 ** -10, 2 ** -11, 1e-30, 1e-45, -(2 ** -10)])).toEqual([0, 0, 0, 0, 0x80]);
});

test("any number becomes the nearest one", () => {
  const stream = new RandomStream("bytes");
  const values = Float32Array.from({ length: 4000 }, () => stream.signed() * 2 ** ((stream.word() % 24) - 14));
  for (const [at, code] of e4m3(values).entries()) {
    const value = present(values[at], "a value");
    const off = Math.abs(e4m3Number(code) - value);
    expect([value, numbers.some((other) => Math.abs(e4m3Number(other) - value) < off)]).toEqual([value, false]);
  }
});
