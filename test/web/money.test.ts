import { describe, expect, test } from "bun:test";
import { exactMoneyText, money, moneyText } from "../../src/web/money.ts";

describe("an amount", () => {
  test.each([
    [0n, "$0.00"],
    [12_340_000_000n, "$12.34"],
    [99_999_958_000n, "$100.00"],
    [1_234_567_891_000_000n, "$1,234,567.89"],
    [994_999_999n, "$0.99"],
    [995_000_000n, "$1.00"],
    [50_000_000n, "$0.05"],
    [99_900_000n, "$0.100"],
    [1_300_000n, "$0.0013"],
    [1_000_417n, "$0.0010"],
    [1n, "$0.000000001"],
    [-15_000_000n, "−$0.015"],
    [-1_234_560_000_000n, "−$1,234.56"],
  ])("of %p nano-dollars reads %p", (nanoDollars, text) => expect(moneyText(nanoDollars)).toBe(text));

  test("has its nine decimals in its title", () => {
    expect(exactMoneyText(99_999_958_000n)).toBe("$99.999958000");
    expect(exactMoneyText(-1n)).toBe("−$0.000000001");
    expect(money(-1_234_000_000_001n).text).toBe(
      '<data value="-1234.000000001" title="−$1,234.000000001">−$1,234.00</data>',
    );
  });
});
