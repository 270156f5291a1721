/** Commands of several words, such as `tendon admin account create`: which one is meant, and the page that lists them. */
import { nearest } from "../../std/nearest.ts";
import { printable } from "../../std/printable.ts";
import { EXIT, Problem } from "../../std/problem.ts";
import { type Command, flagLines, helpText } from "./command.ts";

export interface CommandGroup {
  readonly name: string;
  /** One line for `tendon --help`. */
  readonly summary: string;
  /** Not empty; the name of each begins with that of the group: `admin account create`. */
  readonly commands: readonly Command[];
}

/** The command that `argv` means by its first words, and what is left without them. */
export function choose(
  named: Command | CommandGroup,
  argv: readonly string[],
): { readonly command: Command; readonly argv: readonly string[] } | Problem {
  if (!("commands" in named)) return { command: named, argv };
  for (const command of named.commands) {
    const own = wordsOf(named, command);
    if (own.every((word, index) => argv[index] === word)) return { command, argv: argv.slice(own.length) };
  }
  const end = argv.findIndex((word) => word.startsWith("-"));
  const said = argv.slice(0, end === -1 ? argv.length : end);
  return new Problem(`${unknown(named, said)} See: tendon ${named.name} --help`, EXIT.usage);
}

function wordsOf(group: CommandGroup, command: Command): string[] {
  return command.name.slice(group.name.length + 1).split(" ");
}

function unknown(group: CommandGroup, said: readonly string[]): string {
  const [first] = said;
  if (first === undefined) return "a sub-command is missing.";
  const names = group.commands.map((command) => wordsOf(group, command).join(" "));
  const begun = names.filter((name) => name.startsWith(`${first} `));
  const typed = said.slice(0, 2).join(" ");
  const hint = nearest(typed, begun.length > 0 ? begun : names);
  return `there is no sub-command '${printable(typed)}'; did you mean '${hint}'?`;
}

/** The page of the command that `argv` means, or of the whole group. */
export function helpOf(named: Command | CommandGroup, argv: readonly string[]): string {
  const chosen = choose(named, argv);
  if (!(chosen instanceof Problem)) return helpText(chosen.command);
  return "commands" in named ? groupHelp(named) : helpText(named);
}

function groupHelp({ name, summary, commands }: CommandGroup): string {
  const everywhere = Object.entries(commands[0]?.flags ?? {}).filter(([flag, meaning]) =>
    commands.every((command) => command.flags[flag] === meaning),
  );
  const shared = Object.fromEntries(everywhere);
  const lines = [`Usage: tendon ${name} SUB-COMMAND [flags]`, "", summary, ""];
  for (const command of commands) {
    lines.push(`tendon ${command.name}${command.positionals === undefined ? "" : ` ${command.positionals}`}`);
    lines.push(`  ${command.summary}`);
    const own = Object.entries(command.flags).filter(([flag]) => !Object.hasOwn(shared, flag));
    lines.push(...flagLines(Object.fromEntries(own)), "");
  }
  lines.push("Each of them", ...flagLines(shared), `  ${"--help".padEnd(26)} Show its page, or this one.`);
  return `${lines.join("\n")}\n`;
}
