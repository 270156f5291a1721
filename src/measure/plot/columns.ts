/** The columns of an action chunk: their names and units, and the rows as a printed table. */
import type { ActionChunk } from "../../client/chunk.ts";
import { type Align, table } from "../../std/text-table.ts";

/** One value of a row: its name and the unit it is in. */
export interface Column {
  readonly name: string;
  readonly unit: string;
}

/** `left_joint_1` in two parts: the word that a group of columns shares, and the rest. */
export function nameParts(name: string): { group: string; rest: string } {
  const words = name.split(/[_\s.]+/).filter((word) => word !== "");
  const [first = name, ...rest] = words;
  return rest.length === 0 ? { group: "", rest: first } : { group: first, rest: rest.join(" ") };
}

/** The rows as an aligned table: time in seconds, then one column per joint with its unit below its name. */
export function chunkTable(chunk: ActionChunk, columns: readonly Column[]): string {
  const parts = columns.map((column) => ({ ...nameParts(column.name), unit: column.unit }));
  const head = [
    ["", ...parts.map((part) => part.group)],
    ["time", ...parts.map((part) => part.rest)],
    ["s", ...parts.map((part) => part.unit)],
  ];
  const rows = chunk.actions.map((row, index) => [
    (index * chunk.dt).toFixed(3),
    ...row.map((value) => value.toFixed(4)),
  ]);
  const align: Align[] = ["right", ...columns.map((): Align => "right")];
  return table([...head, ...rows], align);
}
