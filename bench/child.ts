/** Runs a process to its end and reads the JSON that it prints, checked against a schema. */
import { join } from "node:path";
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { childEnvironment } from "../src/config/environment.ts";
import { Problem } from "../src/error/problem.ts";

interface Command {
  /** For problems. */
  readonly name: string;
  readonly words: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** One value per line of its standard output. */
export async function reportsOf<S extends TSchema>(command: Command, schema: S): Promise<Static<S>[] | Problem> {
  const { name, words, environment = {}, cwd } = command;
  try {
    const options = { env: childEnvironment(environment), stdout: "pipe", stderr: "pipe" } as const;
    const child = Bun.spawn([...words], cwd === undefined ? options : { ...options, cwd });
    const [text, said, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) return new Problem(`${name} ended with ${code}: ${said.trim().split("\n").at(-1) ?? ""}`);
    const reports: Static<S>[] = [];
    for (const line of text.trim().split("\n")) {
      const report: unknown = JSON.parse(line);
      if (!Value.Check(schema, report)) return new Problem(`${name} printed something else than its figures`);
      reports.push(report);
    }
    return reports;
  } catch (error) {
    return new Problem(`${name} could not be run: ${(error as Error).message}`);
  }
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
