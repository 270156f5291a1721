/** Whether `norm.json` has good statistics for every column that needs them: with them, nothing is divided by zero later. */
import { present } from "../std/assert.ts";
import { fault } from "./fault.ts";
import type { Manifest, NormStats } from "./manifest.ts";

/** What each kind of normalisation reads. */
const NAMES = { quantile: ["q01", "q99"], min_max: ["min", "max"], mean_std: ["mean", "std"] } as const;
/** The epsilon of a column that declares none. */
const EPSILON = 1e-6;

type Statistic = readonly number[] | readonly (readonly number[])[];
type Kind = keyof typeof NAMES;
type Column = Pick<Manifest["state"]["columns"][number], "name" | "norm" | "epsilon" | "epsilon_rule">;
/** One value per column, and where it stands. */
interface Line {
  readonly path: string;
  readonly values: readonly number[];
}

/** The first statistic that is missing or useless, with its JSON path, what was found and what was expected. */
export function statisticFault({ state, action }: Manifest, norm: NormStats): string | undefined {
  return sideFault("state", state.columns, norm, 1) ?? sideFault("action", action.columns, norm, action.rows);
}

/** `rows`: those of the chunk. */
function sideFault(
  side: "state" | "action",
  columns: readonly Column[],
  norm: NormStats,
  rows: number,
): string | undefined {
  for (const [index, column] of columns.entries()) {
    if (column.norm === "none") continue;
    const [one, other] = NAMES[column.norm];
    const [low, high] = [
      lines(`/${side}/${one}`, norm[side][one], rows),
      lines(`/${side}/${other}`, norm[side][other], rows),
    ];
    if (typeof low === "string") return low;
    if (typeof high === "string") return high;
    for (let row = 0; row < rows; row += 1) {
      const wrong = valueFault(column, column.norm, index, present(low[row], "a row"), present(high[row], "a row"));
      if (wrong !== undefined) return wrong;
    }
  }
  return undefined;
}

/** The values of each row, the same ones for all or those of a table; a string is the fault of a table. */
function lines(path: string, statistic: Statistic = [], rows: number): Line[] | string {
  if (statistic.every((value) => typeof value === "number")) return Array(rows).fill({ path, values: statistic });
  if (statistic.length !== rows) return fault(path, `${statistic.length} rows`, `${rows}, one for each of a chunk`);
  return (statistic as readonly (readonly number[])[]).map((values, row) => ({ path: `${path}/${row}`, values }));
}

/** `first` has the lower end or the mean, `second` the upper end or the deviation. */
function valueFault(
  { name, epsilon = EPSILON, epsilon_rule: rule = "added" }: Column,
  kind: Kind,
  index: number,
  first: Line,
  second: Line,
): string | undefined {
  const [low, high] = [first.values[index], second.values[index]];
  const short = low === undefined ? first : second;
  if (low === undefined || high === undefined)
    return fault(short.path, `${short.values.length} values`, `one for column ${index} (${name})`);
  const infinite = Number.isFinite(low) ? second : first;
  if (!Number.isFinite(low) || !Number.isFinite(high))
    return fault(
      `${infinite.path}/${index}`,
      `${infinite.values[index]}`,
      `a finite number for column ${index} (${name})`,
    );
  const path = `${second.path}/${index}`;
  const isRange = kind !== "mean_std";
  const [least, span] = isRange ? [low, high - low] : [0, high];
  if (span < 0) return fault(path, high, `at least ${isRange ? `${NAMES[kind][0]}, ` : ""}${least}`);
  // A range of 0 whose `min` is its `max` is never divided by.
  if (span > 0 || epsilon > 0 || (rule === "at_least" && kind === "min_max")) return undefined;
  return fault(path, high, `more than ${isRange ? `${NAMES[kind][0]}, ` : ""}${least}, with the epsilon 0`);
}
