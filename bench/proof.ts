/** What a proof is: a question, an answer in figures, and whether the figures are good enough. */
import { median } from "../src/measure/stats.ts";
import type { Problem } from "../src/std/problem.ts";
import { table } from "../src/std/text-table.ts";

/** `small` runs inside `bun test` so that a proof cannot rot, and judges nothing by the clock; `full` is the proof. */
export type Size = "small" | "full";

/** One figure. */
export interface Figure {
  readonly measure: string;
  readonly value: number;
  /** `ms`, `MiB`, `1` for counts and ratios. */
  readonly unit: string;
  /** The largest value that passes, where one was asked for. */
  readonly limit?: number;
  /** The smallest one, where a smaller one means that the measurement is wrong. */
  readonly least?: number;
}

export const MIB = 2 ** 20;

export interface Outcome {
  /** For people: a table and what it means, without a heading. */
  readonly text: string;
  readonly rows: readonly Figure[];
  /** Absent where nothing was asked for. */
  readonly pass?: boolean;
}

export interface Proof {
  readonly name: string;
  readonly question: string;
  /** What may stand behind its name. */
  readonly argument?: string;
  run(size: Size, argument?: string): Promise<Outcome | Problem>;
}

/** Counts, none of which has a limit. */
export function counts(values: readonly (readonly [measure: string, count: number])[], name = ""): Figure[] {
  return values.map(([measure, value]) => ({ measure: name + measure, value, unit: "1" }));
}

/** Makes figures that are medians over the rounds. */
export function medianOver<Round>(rounds: readonly Round[], name = "") {
  return (measure: string, unit: string, of: (round: Round) => number, limits: Partial<Figure> = {}): Figure => ({
    ...{ measure: name + measure, value: median(rounds.map(of)), unit },
    ...limits,
  });
}

/** The figures as a table between two texts, judged by their limits. */
export function judged(rows: readonly Figure[], { above = "", below = "" } = {}): Outcome {
  return { text: above + table(figureLines(rows), ["left", "right"]) + below, rows, pass: withinLimits(rows) };
}

/** True when every figure keeps its limit; a missing figure (NaN) does not. */
export function withinLimits(rows: readonly Figure[]): boolean {
  return rows.every(
    ({ value, limit, least }) => (limit === undefined || value <= limit) && (least === undefined || value >= least),
  );
}

/** Figures as lines: measure, value with unit, limit. */
export function figureLines(rows: readonly Figure[]): string[][] {
  return rows.map(({ measure, value, unit, limit, least }) => {
    const digits = Math.abs(value) < 0.01 ? value.toExponential(1) : value.toFixed(3);
    const shown = Number.isInteger(value) ? String(value) : digits;
    const told = least !== undefined && value < least ? `TOO LOW, at least ${least}` : undefined;
    const asked = limit === undefined ? "" : `${value <= limit ? "ok" : "TOO HIGH"}, at most ${limit}`;
    return [measure, shown, unit === "1" ? "" : unit, told ?? asked];
  });
}
