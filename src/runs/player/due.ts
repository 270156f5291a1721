/** Which action rows were due when: row i of a chunk at `start + i * dt`, until the next chunk starts. */
import type { Chunk, Observation } from "./log-lines.ts";

/** Rounding of `start + i * dt` must not take a moment to the row before. */
const HAIR_SECONDS = 1e-6;

export interface DueRow {
  readonly row: readonly number[];
  readonly index: number;
  /** Rows of its chunk. */
  readonly of: number;
}

/** The row due at `t`, of observations in order; undefined before the first chunk and after the last row. */
export function dueAt(lines: readonly Observation[], t: number, dt: number): DueRow | undefined {
  const chunk = chunksOf(lines).findLast(({ start }) => start <= t + HAIR_SECONDS);
  if (chunk === undefined) return undefined;
  const index = Math.floor((t - chunk.start + HAIR_SECONDS) / dt);
  const row = chunk.actions[index];
  return row === undefined ? undefined : { row, index, of: chunk.actions.length };
}

export interface Point {
  readonly t: number;
  readonly value: number;
}

/** One action column over time: a line for each chunk, as far as its rows were due. */
export function dueLines(lines: readonly Observation[], column: number, dt: number): Point[][] {
  const chunks = chunksOf(lines);
  return chunks.map(({ start, actions }, at) => {
    const end = chunks[at + 1]?.start ?? Number.POSITIVE_INFINITY;
    const points: Point[] = [];
    for (const [index, row] of actions.entries()) {
      const t = start + index * dt;
      if (t >= end - HAIR_SECONDS) break;
      points.push({ t, value: row[column] ?? Number.NaN });
    }
    return points;
  });
}

/** One action column of observations that are far apart: the first row of each chunk, as one line. */
export function dueSamples(lines: readonly Observation[], column: number): Point[][] {
  return [chunksOf(lines).map(({ start, actions }) => ({ t: start, value: actions[0]?.[column] ?? Number.NaN }))];
}

function chunksOf(lines: readonly Observation[]): Chunk[] {
  return lines.flatMap(({ chunk }) => (chunk === undefined ? [] : [chunk]));
}
