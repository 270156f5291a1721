/** `tendon`: the command line's words to a command. */
import { version } from "../package.json" with { type: "json" };
import { COMMANDS, overview } from "./cli/commands.ts";
import { type Command, given } from "./cli/frame/command.ts";
import { choose, helpOf } from "./cli/frame/group.ts";
import { print, printNote } from "./cli/frame/print.ts";
import { systemClock } from "./std/clock.ts";
import { makeLog, stackOf, standardError } from "./std/log.ts";
import { nearest } from "./std/nearest.ts";
import { EXIT, Problem } from "./std/problem.ts";

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === "--help" || name === "-h" || name === "help") return say(await overview());
  if (name === "--version") return say(`tendon ${version}`);
  if (name === undefined) return complain(await overview());
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!load) {
    const hint = nearest(name, Object.keys(COMMANDS));
    return complain(`tendon: there is no command '${name}'; did you mean '${hint}'? See: tendon --help`);
  }
  const named = await load();
  if (wantsHelp(rest)) return say(helpOf(named, rest));
  const chosen = choose(named, rest);
  const outcome = chosen instanceof Problem ? chosen : await run(chosen.command, chosen.argv);
  if (!(outcome instanceof Problem)) return outcome;
  const { name: whole } = chosen instanceof Problem ? named : chosen.command;
  await printNote(`tendon ${whole}: ${outcome.message}`);
  return outcome.exit;
}

async function run(command: Command, argv: readonly string[]): Promise<number | Problem> {
  const parsed = given(command, argv);
  return parsed instanceof Problem ? parsed : await command.run(parsed);
}

/** `--help` before a `--`, wherever it stands. */
function wantsHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return argv.slice(0, end === -1 ? argv.length : end).some((word) => word === "--help" || word === "-h");
}

async function say(text: string): Promise<number> {
  await print(text);
  return EXIT.done;
}

async function complain(text: string): Promise<number> {
  await printNote(text);
  return EXIT.usage;
}

/** A bug of ours: logs one line that can be reported, and exits. */
function crash(error: unknown): never {
  const log = makeLog({ clock: systemClock, json: true, write: standardError });
  log.error("fault", { version, stack: stackOf(error) });
  process.exit(EXIT.failed);
}

// A closed pipe behind standard error must not end the process.
process.stderr.on("error", () => {});
process.on("uncaughtException", crash);
process.on("unhandledRejection", crash);
main(process.argv.slice(2)).then((code) => process.exit(code), crash);
