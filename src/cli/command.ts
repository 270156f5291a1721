/** What a command is, and the one parser of its flags. Each command is a file of this folder. */
import { parseArgs } from "node:util";
import { EXIT, Problem } from "../error.ts";
import { printable } from "./print.ts";

/** One flag: `value` is the word shown in `--help`; without it the flag is a switch. */
interface Flag {
  readonly value?: string;
  readonly multiple?: boolean;
  readonly about: string;
}

export interface Command {
  readonly name: string;
  /** One line for `tendon --help`. */
  readonly summary: string;
  /** Positional arguments as shown in the usage line, for example `DIR`. */
  readonly positionals?: string;
  readonly flags: Readonly<Record<string, Flag>>;
  /** Exit code, or the problem that ended it. */
  run(given: Given): Promise<number | Problem>;
}

/** Flags and positionals as typed by the user, known to be in the command's table. */
export class Given {
  constructor(
    private readonly values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>,
    readonly positionals: readonly string[],
  ) {}

  text(flag: string): string | undefined {
    const value = this.values[flag];
    return typeof value === "string" ? value : undefined;
  }

  on(flag: string): boolean {
    return this.values[flag] === true;
  }

  list(flag: string): readonly string[] {
    const value = this.values[flag];
    return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
  }
}

/** Parses `argv` (without program and command name) against the command's table. */
export function given(command: Command, argv: readonly string[]): Given | Problem {
  const options: Record<string, { type: "string" | "boolean"; multiple?: boolean }> = {};
  for (const [name, flag] of Object.entries(command.flags)) {
    options[name] = { type: flag.value === undefined ? "boolean" : "string", multiple: flag.multiple ?? false };
  }
  try {
    const parsed = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
    if (parsed.positionals.length > 0 && command.positionals === undefined) {
      return usageProblem(command, `unexpected argument '${parsed.positionals[0]}'`);
    }
    return new Given(parsed.values, parsed.positionals);
  } catch (error) {
    // parseArgs explains an unknown or malformed flag in its first sentence; the rest is advice, on lines of its own.
    const sentence = printable((error as Error).message.split(/\.\s/)[0] ?? "wrong use");
    return usageProblem(command, sentence.charAt(0).toLowerCase() + sentence.slice(1));
  }
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
  for (const [name, flag] of Object.entries(command.flags)) {
    lines.push(`  ${`--${name}${flag.value ? ` ${flag.value}` : ""}`.padEnd(26)} ${flag.about}`);
  }
  lines.push(`  ${"--help".padEnd(26)} Show this page.`);
  return `${lines.join("\n")}\n`;
}
