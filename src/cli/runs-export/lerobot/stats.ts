/** Statistics of a feature per episode and over all, as LeRobot has them: its policies normalise with them. */
import { present } from "../../../std/assert.ts";

const QUANTILES = { q01: 0.01, q10: 0.1, q50: 0.5, q90: 0.9, q99: 0.99 } as const;

/** Each has a value per dimension. */
export type Stats = Readonly<Record<"min" | "max" | "mean" | "std" | keyof typeof QUANTILES, readonly number[]>> & {
  readonly count: readonly [number];
};

/** The statistics of rows of the same length, at least one. */
export function statsOf(rows: readonly (readonly number[])[]): Stats {
  const width = rows[0]?.length ?? 0;
  const columns = Array.from({ length: width }, (_, at) => columnStats(Float64Array.from(rows, (row) => row[at] ?? 0)));
  const each = (read: (column: ColumnStats) => number) => columns.map(read);
  return {
    min: each(({ min }) => min),
    max: each(({ max }) => max),
    mean: each(({ mean }) => mean),
    std: each(({ std }) => std),
    count: [rows.length],
    ...mapValues(QUANTILES, (_, name) => each((column) => column[name])),
  };
}

type ColumnStats = Readonly<Record<"min" | "max" | "mean" | "std" | keyof typeof QUANTILES, number>>;

function columnStats(values: Float64Array): ColumnStats {
  const sorted = values.toSorted();
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return {
    min: present(sorted.at(0), "a row"),
    max: present(sorted.at(-1), "a row"),
    mean,
    std: Math.sqrt(variance),
    ...mapValues(QUANTILES, (share) => quantile(sorted, share)),
  };
}

/** Between the two nearest values, in proportion. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(at)] ?? 0, sorted[Math.ceil(at)] ?? 0];
  return below + (above - below) * (at - Math.floor(at));
}

/** The statistics of all episodes together, by LeRobot's rule: quantiles are the mean of the episodes' ones, weighted by their rows. */
export function together(episodes: readonly Stats[]): Stats {
  const total = episodes.reduce((sum, { count }) => sum + count[0], 0);
  const width = episodes[0]?.mean.length ?? 0;
  const combined = (read: (stats: Stats, at: number) => number, how: (values: number[]) => number) =>
    Array.from({ length: width }, (_, at) => how(episodes.map((stats) => read(stats, at))));
  const weighted = (read: (stats: Stats, at: number) => number) =>
    combined(
      read,
      (values) => values.reduce((sum, value, index) => sum + value * (episodes[index]?.count[0] ?? 0), 0) / total,
    );
  const at = (name: keyof ColumnStats) => (stats: Stats, index: number) => stats[name][index] ?? 0;
  const mean = weighted(at("mean"));
  const squares = weighted(
    (stats, index) => at("std")(stats, index) ** 2 + (at("mean")(stats, index) - (mean[index] ?? 0)) ** 2,
  );
  return {
    min: combined(at("min"), (values) => Math.min(...values)),
    max: combined(at("max"), (values) => Math.max(...values)),
    mean,
    std: squares.map(Math.sqrt),
    count: [total],
    ...mapValues(QUANTILES, (_, name) => weighted(at(name))),
  };
}

function mapValues<K extends string, V, W>(object: Readonly<Record<K, V>>, map: (value: V, key: K) => W): Record<K, W> {
  const entries = Object.entries(object) as [K, V][];
  return Object.fromEntries(entries.map(([key, value]) => [key, map(value, key)])) as Record<K, W>;
}
