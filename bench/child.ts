/** Runs a process to its end and reads the JSON that it prints, checked against a schema. */
import { join } from "node:path";
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parseJson } from "../src/client/json.ts";
import { childEnvironment } from "../src/config/environment.ts";
import { Problem } from "../src/std/problem.ts";

interface Command {
  /** For problems. */
  readonly name: string;
  readonly words: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Its standard output. */
export async function textOf({ name, words, environment = {}, cwd }: Command): Promise<string | Problem> {
  try {
    const options = { env: childEnvironment(environment), stdout: "pipe", stderr: "pipe" } as const;
    const child = Bun.spawn([...words], cwd === undefined ? options : { ...options, cwd });
    const [text, said, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return code === 0 ? text : new Problem(`${name} ended with ${code}: ${said.trim().split("\n").at(-1) ?? ""}`);
  } catch (error) {
    return new Problem(`${name} could not be run: ${(error as Error).message}`);
  }
}

/** One value per line of its standard output. */
export async function reportsOf<S extends TSchema>(command: Command, schema: S): Promise<Static<S>[] | Problem> {
  const text = await textOf(command);
  if (text instanceof Problem) return text;
  const strange = new Problem(`${command.name} printed something else than its figures`);
  const reports: Static<S>[] = [];
  for (const line of text.trim().split("\n")) {
    const report = parseJson(line);
    if (!Value.Check(schema, report)) return strange;
    reports.push(report);
  }
  return reports;
}

/** What a file of this folder prints, run in a process of its own. */
export async function reportOf<S extends TSchema>(
  file: string,
  args: readonly string[],
  schema: S,
  environment: Readonly<Record<string, string>> = {},
): Promise<Static<S> | Problem> {
  const words = [process.execPath, join(import.meta.dir, file), ...args];
  const reports = await reportsOf({ name: file, words, environment }, schema);
  return reports instanceof Problem ? reports : (reports[0] ?? new Problem(`${file} printed no figures`));
}
