/** The known word nearest to a misspelt one, for error messages. */
import { present } from "./assert.ts";

/** The member of `known` (not empty) with the smallest edit distance to `word`; the first of several. */
export function nearest(word: string, known: readonly string[]): string {
  let best = present(known[0], "a known word");
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const distance = editDistance(word, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance, one row at a time. */
function editDistance(source: string, target: string): number {
  let above = Array.from({ length: target.length + 1 }, (_, column) => column);
  for (let row = 1; row <= source.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= target.length; column += 1) {
      const swap = (above[column - 1] ?? 0) + (source[row - 1] === target[column - 1] ? 0 : 1);
      current.push(Math.min(swap, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    above = current;
  }
  return above[target.length] ?? 0;
}
