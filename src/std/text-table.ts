/** Aligned columns of text for a terminal. */

export type Align = "left" | "right";

/** Rows of cells to lines, each column as wide as its widest cell, two spaces apart. `align` is per column; left by default. */
export function table(rows: readonly (readonly string[])[], align: readonly Align[] = []): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, index) => {
        const width = widths[index] ?? 0;
        return align[index] === "right" ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return `${rows.map(line).join("\n")}\n`;
}
