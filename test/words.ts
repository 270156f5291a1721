/** Prose inside code: comments, sentences, and the texts that a person reads of a command or an error. */

/** Each comment as one line of text; lines of `//` or `#` that follow each other are one comment. */
export function commentsOf(path: string, source: string): string[] {
  const line = /\.(py|sh)$/.test(path) ? "#" : "\\/\\/[/!]?";
  const runs = `(?:^|[ \\t])${line}(?: .*)?(?:\\n[ \\t]*${line}(?: .*)?)*$`;
  const blocks = /\.(py|sh)$/.test(path) ? "" : "|\\/\\*[\\s\\S]*?\\*\\/";
  return [...source.matchAll(new RegExp(`${runs}${blocks}`, "gm"))]
    .map(([comment]) => comment.replaceAll(new RegExp(`^[ \\t]*(?:${line}|\\/?\\*+\\/?)[ \\t]?|\\*\\/`, "gm"), ""))
    .map((text) => text.replaceAll(/\s+/g, " ").trim());
}

/** Sentences with more words than `max`. A code span is one word; an item, a cell or two spaces end a sentence. */
export function longSentences(text: string, max: number): string[] {
  const plain = text.replaceAll(/`[^`]*`/g, "code").replaceAll(/\]\([^)]*\)/g, "]");
  return plain
    .split(/(?<=[.!?])["')*]*\s+|\n\s*\n|\n(?=[-|#\d])|\||:\n| {2,}/)
    .filter((sentence) => wordCount(sentence) > max);
}

function wordCount(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/** The texts of the string literals in each of these calls, one text for each call; what is filled in counts as one word. */
export function textsIn(source: string, call: RegExp): string[] {
  return [...source.matchAll(call)].map(({ index, 0: { length } }) => {
    const end = closing(source, index + length);
    const literals = source.slice(index + length, end).matchAll(/(\+\s*)?(?:"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g);
    return [...literals]
      .map(
        ([, plus, quoted, template]) =>
          `${plus ? "" : "\n\n"}${quoted ?? template?.replaceAll(/\$\{[^}]*\}/g, "value")}`,
      )
      .join("")
      .replaceAll("\\`", "`");
  });
}

/** Index of the parenthesis that closes the one before `from`. */
function closing(source: string, from: number): number {
  let depth = 1;
  for (let at = from; at < source.length; at++) {
    if (source[at] === "(") depth += 1;
    if (source[at] === ")") depth -= 1;
    if (depth === 0) return at;
  }
  return source.length;
}
