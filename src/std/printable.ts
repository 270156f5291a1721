/** Text from outside the project, safe to write to a terminal: without control characters, which could move the cursor or change colours. */
export function printable(text: string): string {
  return text.replace(/\p{C}/gu, " ");
}
