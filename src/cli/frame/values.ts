/** Values of flags as typed: whole numbers, amounts of US dollars. */
import { EXIT, Problem } from "../../error/problem.ts";
import { printable } from "../../std/printable.ts";
import { nanosOf } from "../../std/usd.ts";

/** The number that `text` writes in decimal digits, if it is whole and at most `max`. */
export function wholeNumber(text: string, max: number): number | undefined {
  if (!/^\d{1,16}$/.test(text)) return undefined;
  const value = Number(text);
  return value <= max ? value : undefined;
}

const RULES = {
  "not negative": (nanos: bigint) => nanos >= 0n,
  "not zero": (nanos: bigint) => nanos !== 0n,
} as const;

/** Nano-dollars. Exit 2 for a text that is no amount or breaks the rule. */
export function amountOf(text: string, flag: string, rule: keyof typeof RULES, or = ""): bigint | Problem {
  const nanos = nanosOf(text);
  if (nanos !== undefined && RULES[rule](nanos)) return nanos;
  return new Problem(
    `--${flag} must be an amount of US dollars such as 12.50, ${rule}, below 1000000000, with at most nine decimal places${or}, ` +
      `not '${printable(text)}'`,
    EXIT.usage,
  );
}
