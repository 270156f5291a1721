/** Sums of usage: by kind of model, by model, and as the few series that a chart can show. */

/** Robot models are counted in chunks and their rows, language models in responses and their tokens. */
export type ModelKind = "robot" | "language";

/** What was used. */
export interface Amounts {
  /** Chunks of a robot model, responses of a language model. */
  readonly runs: number;
  /** Tokens in, cached ones included. */
  readonly tokensIn: number;
  readonly tokensCached: number;
  /** Rows of a robot model, tokens of a language model. */
  readonly out: number;
  /** Nano-dollars. */
  readonly cost: bigint;
}

export interface UsageRow extends Amounts {
  /** UTC: `2026-11-21`. */
  readonly day: string;
  readonly kind: ModelKind;
  readonly model: string;
}

interface ModelUsage extends Amounts {
  readonly model: string;
}

export function totalOf(rows: readonly Amounts[]): Amounts {
  const nothing: Amounts = { runs: 0, tokensIn: 0, tokensCached: 0, out: 0, cost: 0n };
  return rows.reduce(
    (sum, row) => ({
      runs: sum.runs + row.runs,
      tokensIn: sum.tokensIn + row.tokensIn,
      tokensCached: sum.tokensCached + row.tokensCached,
      out: sum.out + row.out,
      cost: sum.cost + row.cost,
    }),
    nothing,
  );
}

/** Sorted by cost, highest first. */
export function byModel(rows: readonly UsageRow[]): ModelUsage[] {
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
