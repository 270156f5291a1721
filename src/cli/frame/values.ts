/** Values of flags as typed: whole numbers, bounds, amounts of US dollars, keys of `[gpu]`. */
import { readTable } from "../../config/check.ts";
import { type GpuSettings, GpuTable } from "../../config/gpu.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { nanosOf } from "../../std/usd.ts";
import { type Command, type CommandLine, usageProblem } from "./command.ts";

/** The whole number of a flag, `min` to `max`; undefined for a flag that is not given. */
export function wholeNumber(
  command: Command,
  given: CommandLine,
  flag: string,
  [min, max]: readonly [min: number, max: number],
): number | undefined | Problem {
  const text = given.text(flag);
  if (text === undefined) return undefined;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  return usageProblem(command, `--${flag} is '${text}', expected a whole number from ${min} to ${max}`);
}

/** The largest difference of rows that `--within` allows; undefined without the flag. */
export function boundIn(command: Command, given: CommandLine): number | undefined | Problem {
  const text = given.text("within");
  if (text === undefined) return undefined;
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  return usageProblem(command, `--within is '${text}', expected a number above 0`);
}

/** `key=value,…` of the table `[gpu]`: numbers, true and false as such, all else as a text. A key alone is true. */
export function gpuKeys(words: string): GpuSettings | Problem {
  const pairs = words.split(",").filter((word) => word !== "");
  const table = Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      const [key, value] = at < 0 ? [pair, "true"] : [pair.slice(0, at), pair.slice(at + 1)];
      if (value === "true" || value === "false") return [key, value === "true"];
      return [key, /^\d+$/.test(value) ? Number(value) : value];
    }),
  );
  return readTable(GpuTable, table, "--gpu");
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

/** `on` or `off`; undefined for a flag that is not given. */
export function switchOf(given: CommandLine, flag: string): boolean | undefined | Problem {
  const text = given.text(flag);
  if (text === undefined || text === "on" || text === "off") return text === undefined ? undefined : text === "on";
  return new Problem(`--${flag} must be on or off, not '${printable(text)}'`, EXIT.usage);
}
