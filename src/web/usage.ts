/** Sums of usage: by model, and as the few series that a chart can show. */

export interface UsageRow {
  /** UTC: `2026-11-21`. */
  day: string;
  model: string;
  runs: number;
  /** Nano-dollars. */
  cost: bigint;
}

export function totalOf(rows: readonly UsageRow[]): Pick<UsageRow, "runs" | "cost"> {
  return rows.reduce((sum, { runs, cost }) => ({ runs: sum.runs + runs, cost: sum.cost + cost }), {
    runs: 0,
    cost: 0n,
  });
}

/** Sorted by cost, highest first. */
export function byModel(rows: readonly UsageRow[]): Omit<UsageRow, "day">[] {
  return [...Map.groupBy(rows, ({ model }) => model)]
    .map(([model, its]) => ({ model, ...totalOf(its) }))
    .sort((a, b) => (a.cost === b.cost ? (a.model < b.model ? -1 : 1) : a.cost > b.cost ? -1 : 1));
}

export interface Series {
  readonly name: string;
  readonly models: ReadonlySet<string>;
}

const SERIES_MAX = 6;

/** One series per model; with too many models the last series is the sum of the cheapest. */
export function seriesOf(rows: readonly UsageRow[]): Series[] {
  const models = byModel(rows).map(({ model }) => model);
  const alone = models.length <= SERIES_MAX ? models : models.slice(0, SERIES_MAX - 1);
  const rest = models.slice(alone.length);
  return [
    ...alone.map((model) => ({ name: model, models: new Set([model]) })),
    ...(rest.length === 0 ? [] : [{ name: `${rest.length} other models`, models: new Set(rest) }]),
  ];
}
