/** The code blocks of a Markdown text, and the comparison of a shown output with a real one. */

export interface Block {
  readonly language: string;
  readonly code: string;
  /** The `text` block right behind a command: its output. */
  readonly output: string | undefined;
}

/** All blocks in their order; an output belongs to the block before it. */
export function blocksOf(text: string): Block[] {
  const blocks = text.matchAll(/^```(\w+)\n([\s\S]*?)^```$(?:\n^```text\n([\s\S]*?)^```$)?/gm);
  return [...blocks].map(([, language = "", code = "", output]) => ({ language, code, output }));
}

const ELLIPSIS = "…";
const NUMBER = /-?\d+(?:\.\d+)?/g;

/**
 * The shown lines that the real output lacks, in order. `…` as a line is any number of lines, at the end of a line the rest of it.
 * Ids, times and durations are not compared; other numbers are, to 0.02 or one percent, since processors round differently.
 */
export function missingLines(shown: string, real: string): string[] {
  const lines = real.trimEnd().split("\n");
  const missing: string[] = [];
  let next = 0;
  let free = false;
  for (const line of shown.trimEnd().split("\n")) {
    if (line === ELLIPSIS || line.trim() === ELLIPSIS) {
      free = true;
      continue;
    }
    const rest = lines.slice(next, free ? undefined : next + 1);
    const at = rest.findIndex((candidate) => agrees(line, candidate));
    if (at < 0) missing.push(line);
    else next += at + 1;
    free = false;
  }
  return next < lines.length && !free ? [...missing, "the end"] : missing;
}

function agrees(shown: string, real: string): boolean {
  const cut = shown.endsWith(ELLIPSIS);
  const [left, right] = [masked(cut ? shown.slice(0, -1) : shown), masked(real)];
  const [words, realWords] = [wordsOf(left), wordsOf(right)];
  if (cut ? !realWords.startsWith(words) : realWords !== words) return false;
  const numbers = right.match(NUMBER) ?? [];
  return (left.match(NUMBER) ?? []).every((number, index) => isClose(Number(number), Number(numbers[index])));
}

function masked(line: string): string {
  return line
    .replaceAll(/\b(anon-|gen_|acct_)\w+/g, "$1")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, "TIME")
    .replace(/"created":\d+/, "CREATED")
    .replace(/^timing in ms: .*/, "TIMING")
    .replace(/^\d+ values were outside/, "VALUES were outside");
}

function wordsOf(line: string): string {
  return line.replaceAll(NUMBER, "#").replaceAll(/\s+/g, " ").trimEnd();
}

function isClose(shown: number, real: number): boolean {
  return Math.abs(shown - real) <= Math.max(0.02, Math.abs(shown) / 100);
}
