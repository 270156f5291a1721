/** Standard output of the commands. Whole texts, awaited, so that nothing is cut off when the process exits into a pipe. */

/** Writes `text`, with a line break at its end if it has none. */
export async function print(text: string): Promise<void> {
  await Bun.write(Bun.stdout, text.endsWith("\n") ? text : `${text}\n`);
}

/** One JSON document on one line, for `--json`. */
export async function printJson(value: unknown): Promise<void> {
  await print(JSON.stringify(value));
}

/** A remark for the person at the terminal; standard output stays clean for programs. */
export async function printNote(text: string): Promise<void> {
  await Bun.write(Bun.stderr, `${text}\n`);
}

/** Text from outside the project without control characters, so that it cannot move the cursor of a terminal. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, " ");
}
