/** What a command is, and the parser of its flags. Each command is a file of `src/cli/` or, in a group, of the group's folder. */
import { parseArgs } from "node:util";
import { present } from "../../std/assert.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";

/** One flag: `value` is the word shown in `--help`; a flag without it is a switch. */
interface Flag {
  readonly value?: string;
  readonly multiple?: boolean;
  /** Wrong use without it, or with an empty value. */
  readonly required?: boolean;
  readonly about: string;
}

/** The flag of all commands that call a service. */
export const BASE_URL_FLAG: Flag = {
  value: "URL",
  about: "Address of the service (TENDON_BASE_URL, the credentials file, this machine).",
};

export interface Command {
  readonly name: string;
  /** One line for `tendon --help`. */
  readonly summary: string;
  /** Further lines of the command's page. */
  readonly details?: readonly string[];
  /** Positional arguments as shown in the usage line: `DIR`, `ROBOT RUN [DIR]`, or `DIR…` for one or more. */
  readonly positionals?: string;
  readonly flags: Readonly<Record<string, Flag>>;
  /** Exit code, or the problem that ended it. */
  run(given: CommandLine): Promise<number | Problem>;
}

/** Flags and positionals as typed, checked against the command's table. */
export class CommandLine {
  constructor(
    private readonly values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>,
    readonly positionals: readonly string[],
  ) {}

  /** A positional argument that the command's table requires. */
  word(index: number): string {
    return present(this.positionals[index], `the positional argument ${index}`);
  }

  text(flag: string): string | undefined {
    const value = this.values[flag];
    return typeof value === "string" ? value : undefined;
  }

  /** The value of a flag that the command's table requires. */
  required(flag: string): string {
    return present(this.text(flag), `the flag --${flag}`);
  }

  on(flag: string): boolean {
    return this.values[flag] === true;
  }

  list(flag: string): readonly string[] {
    const value = this.values[flag];
    return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
  }
}

type Options = Record<string, { type: "string" | "boolean"; multiple: boolean }>;

/** The flags as `parseArgs` wants them. */
function optionsOf({ flags }: Command): Options {
  const options: Options = {};
  for (const [name, flag] of Object.entries(flags)) {
    options[name] = { type: flag.value === undefined ? "boolean" : "string", multiple: flag.multiple ?? false };
  }
  return options;
}

/** `--usd -5` as `--usd=-5`: parseArgs takes every word with a dash for a flag, and no flag begins with a digit. */
function joinNegatives(argv: readonly string[], options: Options): string[] {
  const joined: string[] = [];
  for (const [index, word] of argv.entries()) {
    if (word === "--") return [...joined, ...argv.slice(index)];
    const flag = joined.at(-1) ?? "";
    const takes = flag.startsWith("--") && options[flag.slice(2)]?.type === "string";
    if (takes && /^-[\d.]/.test(word)) joined[joined.length - 1] = `${flag}=${word}`;
    else joined.push(word);
  }
  return joined;
}

/** Parses `argv` (without program and command name) against the command's table. */
export function given(command: Command, argv: readonly string[]): CommandLine | Problem {
  const options = optionsOf(command);
  try {
    const parsed = parseArgs({ args: joinNegatives(argv, options), options, allowPositionals: true, strict: true });
    const given = new CommandLine(parsed.values, parsed.positionals);
    const missing = Object.entries(command.flags).find(([flag, { required }]) => required && !given.text(flag));
    if (missing !== undefined) return usageProblem(command, `--${missing[0]} ${missing[1].value} is missing`);
    const wrong = wordsProblem(command.positionals, parsed.positionals);
    return wrong === undefined ? given : usageProblem(command, wrong);
  } catch (error) {
    // parseArgs explains an unknown or malformed flag in its first sentence; the rest is advice on further lines.
    const sentence = printable((error as Error).message.split(/\.\s/)[0] ?? "wrong use");
    return usageProblem(command, sentence.charAt(0).toLowerCase() + sentence.slice(1));
  }
}

/** What is wrong with the number of positional arguments. */
function wordsProblem(expected: string | undefined, words: readonly string[]): string | undefined {
  if (expected === undefined) return words.length === 0 ? undefined : `unexpected argument '${words[0]}'`;
  const names = expected.split(" ");
  const least = names.filter((name) => !name.startsWith("[")).length;
  if (words.length < least) return `expected ${names.length === 1 ? "one " : ""}${expected}`;
  if (words.length <= names.length || expected.endsWith("…")) return undefined;
  return `expected ${names.length === 1 ? "one " : ""}${expected}; a text with spaces needs quotes`;
}

/** Wrong use: exit 2, with the way to the right use. */
export function usageProblem(command: Command, what: string): Problem {
  return new Problem(`${what}; see: tendon ${command.name} --help`, EXIT.usage);
}

export function helpText(command: Command): string {
  const lines = [
    `Usage: tendon ${command.name}${command.positionals ? ` ${command.positionals}` : ""} [flags]`,
    "",
    command.summary,
    "",
  ];
  if (command.details !== undefined) lines.push(...command.details.map((line) => `  ${line}`), "");
  lines.push(...flagLines(command.flags));
  lines.push(`  ${"--help".padEnd(26)} Show this page.`);
  return `${lines.join("\n")}\n`;
}

/** One line per flag. */
export function flagLines(flags: Command["flags"]): string[] {
  return Object.entries(flags).map(
    ([name, { value, about }]) => `  ${`--${name}${value === undefined ? "" : ` ${value}`}`.padEnd(26)} ${about}`,
  );
}
