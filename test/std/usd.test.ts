import { describe, expect, test } from "bun:test";
import { nanosOf, usdText } from "../../src/std/usd.ts";

describe("an amount of US dollars", () => {
  test.each([
    [0n, "0.000000000"],
    [1n, "0.000000001"],
    [-1n, "-0.000000001"],
    [99_999_958_000n, "99.999958000"],
    [-2_500_000_000n, "-2.500000000"],
    [999_999_999_999_999_999n, "999999999.999999999"],
  ])("of %p nano-dollars is written %p, and read again as the same", (nanos, text) => {
    expect(usdText(nanos)).toBe(text);
    expect(nanosOf(text)).toBe(nanos);
  });

  test.each([
    ["12", 12_000_000_000n],
    ["12.5", 12_500_000_000n],
    ["-3.000000001", -3_000_000_001n],
    ["007", 7_000_000_000n],
    ["-0", 0n],
    [" 1 ", 1_000_000_000n],
  ])("%p is read as %p nano-dollars", (text, nanos) => expect(nanosOf(text)).toBe(nanos));

  // A tenth decimal is refused, not rounded.
  test.each([
    "",
    "-",
    ".5",
    "5.",
    "1.0000000001",
    "1000000000",
    "1e3",
    "0x10",
    "1,000",
    "$5",
    "+5",
    "--5",
    "NaN",
    "1 2",
  ])("%p is none", (text) => expect(nanosOf(text)).toBeUndefined());
});
