/** Standard output of the commands. Whole texts, awaited, so that nothing is cut off when the process exits into a pipe. */

/** Writes `text`, with a line break at its end if it has none. */
export async function print(text: string): Promise<void> {
  await write(Bun.stdout, text.endsWith("\n") ? text : `${text}\n`);
}

/** One JSON document on one line, for `--json`. */
export async function printJson(value: unknown): Promise<void> {
  await print(JSON.stringify(value));
}

/** A remark for the person at the terminal; standard output stays clean for programs. */
export async function printNote(text: string): Promise<void> {
  await write(Bun.stderr, `${text}\n`);
}

/** A reader that has gone (`tendon models | head -1`) has read what it wanted: no fault of the command. */
async function write(stream: Bun.BunFile, text: string): Promise<void> {
  try {
    await Bun.write(stream, text);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
}

/** Text from outside the project without control characters, so that it cannot move the cursor of a terminal. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, " ");
}
