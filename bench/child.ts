/** Processes of a proof: those that run to their end and print JSON, and those that run beside it and answer messages. */
import { join } from "node:path";
import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { childEnvironment } from "../src/config/environment.ts";
import { parseJson } from "../src/std/json.ts";
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

/** What a file of this folder prints, run in a separate process. */
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

/** A program of this folder beside the proof. */
export interface Helper extends AsyncDisposable {
  readonly pid: number;
  /** Sends a message and waits for its answer. A process that has ended is a problem. */
  ask<S extends TSchema>(message: unknown, schema: S): Promise<Static<S> | Problem>;
}

/** Starts a program that answers each message with one. It ends with this process. */
export function startHelper(
  file: string,
  words: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Helper {
  let heard = Promise.withResolvers<unknown>();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, file), ...words], {
    env: childEnvironment(environment),
    stdio: ["ignore", "ignore", "inherit"],
    ipc: (message) => heard.resolve(message),
    onExit: (_child, code, signal) => heard.resolve(new Problem(`${file} ended with ${code ?? signal}`)),
  });
  return {
    pid: child.pid,
    async ask(message, schema) {
      if (child.exitCode !== null) return new Problem(`${file} ended with ${child.exitCode}`);
      heard = Promise.withResolvers();
      child.send(message);
      const answer = await heard.promise;
      if (answer instanceof Problem || Value.Check(schema, answer)) return answer;
      return new Problem(`${file} answered '${JSON.stringify(answer).slice(0, 200)}'`);
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}

/** In a program of `startHelper`: answers each message. The process ends with its parent. */
export function answerMessages(answer: (message: unknown) => unknown): void {
  process.on("message", async (message) => process.send?.(await answer(message)));
  process.on("disconnect", () => process.exit(0));
}

/** In a program of `reportOf`: prints what `main` returns, and ends the process. */
export async function report(main: () => Promise<object | Problem>): Promise<never> {
  const figures = await main();
  if (figures instanceof Problem) process.stderr.write(`${figures.message}\n`);
  else process.stdout.write(`${JSON.stringify(figures)}\n`);
  process.exit(figures instanceof Problem ? 1 : 0);
}
