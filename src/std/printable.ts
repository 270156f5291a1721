/** Text from outside the project, safe to write to a terminal. */

/** The text without control characters, which could move the cursor or change colours. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, " ");
}

/** The same for a text of several lines: line breaks and tabs stay, and what joins or directs visible characters. */
export function printableLines(text: string): string {
  return text.replace(/(?![\n\t])\p{Cc}/gu, " ");
}
