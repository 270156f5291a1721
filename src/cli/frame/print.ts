/** Standard output of the commands. Whole texts, awaited, so that nothing is cut off when the process exits into a pipe. */
import { EXIT } from "../../std/problem.ts";
import type { CommandLine } from "./command.ts";

/** Writes `text`, with a line break at its end if it has none. */
export async function print(text: string): Promise<void> {
  await write(Bun.stdout, text.endsWith("\n") ? text : `${text}\n`);
}

/** Writes `text` as it is. */
export async function printPiece(text: string): Promise<void> {
  await write(Bun.stdout, text);
}

/** One JSON document on one line, for `--json`. */
export async function printJson(value: unknown): Promise<void> {
  await print(JSON.stringify(value));
}

/** The value with `--json`, else the text for people; exit code 0. */
export async function answer(given: CommandLine, value: object, text: string): Promise<number> {
  if (given.on("json")) await printJson(value);
  else await print(text);
  return EXIT.done;
}

/** A remark for the person at the terminal; standard output stays clean for programs. */
export async function printNote(text: string): Promise<void> {
  await write(Bun.stderr, `${text}\n`);
}

/** A closed pipe is no error: `tendon models | head -1` has read what it wanted. */
async function write(stream: Bun.BunFile, text: string): Promise<void> {
  try {
    await Bun.write(stream, text);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
}
