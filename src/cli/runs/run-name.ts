/** The run that a command names by two words, and the service that has it. */
import { RunsClient } from "../../client/runs.ts";
import { signedIn } from "../../client/sign-in.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { nameProblem, type RunName } from "../../std/run-names.ts";
import { type Command, type CommandLine, usageProblem } from "../frame/command.ts";
import { answer } from "../frame/print.ts";

/** Wrong use when one of the names cannot be that of a robot or a run. */
export function checkedName(command: Command, { robot, run }: RunName): RunName | Problem {
  for (const [what, name] of Object.entries({ robot, run })) {
    const wrong = nameProblem(name);
    if (wrong !== undefined) return usageProblem(command, `'${printable(name)}' is no name of a ${what}: it ${wrong}`);
  }
  return { robot, run };
}

/** `ROBOT RUN`. */
export function namedRun(command: Command, given: CommandLine): RunName | Problem {
  return checkedName(command, { robot: given.word(0), run: given.word(1) });
}

/** Prints what the service that the flags name answers about its runs. */
export async function asked<T extends object>(
  given: CommandLine,
  ask: (runs: RunsClient) => Promise<T | Problem>,
  text: (answered: T) => string,
): Promise<number | Problem> {
  const service = await signedIn(given.text("base-url"));
  if (service instanceof Problem) return service;
  const answered = await ask(new RunsClient(service));
  return answered instanceof Problem ? answered : await answer(given, answered, text(answered));
}
