/** Amounts of US dollars as typed after a flag. */
import { EXIT, Problem } from "../../error/problem.ts";
import { nanosOf } from "../../std/usd.ts";
import { printable } from "./print.ts";

const RULES = {
  "not negative": (nanos: bigint) => nanos >= 0n,
  "not zero": (nanos: bigint) => nanos !== 0n,
} as const;

/** Nano-dollars. Exit 2 for what is no amount or breaks the rule. */
export function amountOf(text: string, flag: string, rule: keyof typeof RULES, or = ""): bigint | Problem {
  const nanos = nanosOf(text);
  if (nanos !== undefined && RULES[rule](nanos)) return nanos;
  return new Problem(
    `--${flag} must be an amount of US dollars such as 12.50, ${rule}, below 1000000000, with at most nine decimal places${or}, ` +
      `not '${printable(text)}'`,
    EXIT.usage,
  );
}
