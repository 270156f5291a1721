/** Order statistics of measured times, by the nearest-rank rule: every figure is a value that was measured. */

/** The value below or at which `percent` of the ascending `sorted` values lie, 0 < percent ≤ 100. NaN for no values. */
export function percentile(sorted: readonly number[], percent: number): number {
  const rank = Math.ceil((percent / 100) * sorted.length - 1e-9);
  return sorted[Math.max(1, rank) - 1] ?? Number.NaN;
}

export type Summary = ReturnType<typeof summary>;

/** The percentiles that every table of this project shows. Units are those of `values`. */
export function summary(values: readonly number[]) {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    count: sorted.length,
    p50: percentile(sorted, 50),
    p90: percentile(sorted, 90),
    p99: percentile(sorted, 99),
    max: sorted.at(-1) ?? Number.NaN,
  };
}

/** A dash for what was not measured: NaN. */
export function shown(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : "-";
}

/** The middle one of an odd number of values, the lower middle one otherwise. */
export function median(values: readonly number[]): number {
  return summary(values).p50;
}
