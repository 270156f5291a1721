import { expect, test } from "bun:test";
import { float32Text, rowsText } from "../../src/std/float32.ts";

/** Every decimal of `digits` digits next to `value`, exactly, by big integers: does one of them read back? */
function readsBackWith(value: number, digits: number): boolean {
  const size = Math.abs(value);
  const [mantissaText = "", exponentText = "0"] = size.toExponential(60).split("e");
  const kept = BigInt(mantissaText.replace(".", "").slice(0, digits));
  for (const mantissa of [kept, kept + 1n]) {
    const decimal = Number(`${mantissa}e${Number(exponentText) - digits + 1}`);
    if (Math.fround(decimal) === size) return true;
  }
  return false;
}

function significantDigits(text: string): number {
  const digits = (text.split("e")[0] ?? "").replace(/[-.]/g, "").replace(/^0+/, "").replace(/0+$/, "");
  return Math.max(digits.length, 1);
}

/** A fixed sequence, so that a failure can be seen again. */
function* bitPatterns(count: number): Generator<number> {
  let state = 12345;
  for (let i = 0; i < count; i += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state;
  }
}

const view = new DataView(new ArrayBuffer(4));

function fromBits(bits: number): number {
  view.setUint32(0, bits);
  return view.getFloat32(0);
}

function check(value: number): void {
  const text = float32Text(value);
  const digits = significantDigits(text);
  const readBack = JSON.parse(text);
  const right = Object.is(Math.fround(readBack), value) && (digits === 1 || !readsBackWith(value, digits - 1));
  if (!right) throw new Error(`${value} printed as ${text}`);
}

test("action numbers are printed in the shortest form that reads back to the same float32", () => {
  for (const bits of bitPatterns(50_000)) {
    const value = fromBits(bits);
    if (Number.isFinite(value)) check(value);
  }
  for (let i = -30_000; i < 30_000; i += 1) check(Math.fround(i / 9973));
  for (let exponent = -149; exponent < 128; exponent += 1) check(2 ** exponent);
});

test("well known numbers", () => {
  const known: [number, string][] = [
    [0, "0"],
    [-0, "-0"],
    [1, "1"],
    [-0.5, "-0.5"],
    [0.1, "0.1"],
    [1 / 3, "0.33333334"],
    [16_777_216, "16777216"],
    [3.4028234663852886e38, "3.4028235e+38"],
    [1.401298464324817e-45, "1e-45"],
  ];
  for (const [value, text] of known) expect([value, float32Text(Math.fround(value))]).toEqual([value, text]);
});

test("rows are an array of arrays", () => {
  expect(rowsText(Float32Array.of(1, 2.5, -3, 0.1, 5, 6), 2, 3)).toBe("[[1,2.5,-3],[0.1,5,6]]");
});
