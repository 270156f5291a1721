/** The one folder that a command of `tendon bundle` is about. */
import { resolve } from "node:path";
import type { Problem } from "../../std/problem.ts";
import { type Command, type Given, usageProblem } from "../frame/command.ts";

/** Its absolute path; exit 2 where none or more are given. */
export function folderOf(command: Command, { positionals: [folder, ...rest] }: Given): string | Problem {
  if (folder === undefined) return usageProblem(command, `'${command.name}' needs a folder`);
  return rest.length === 0 ? resolve(folder) : usageProblem(command, `unexpected argument '${rest[0]}'`);
}
