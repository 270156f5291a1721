/** The percentiles of a latency as columns of a report. */
import type { Histogram } from "../histogram.ts";
import type { Column } from "../tabular.ts";

export function latencyColumns<M>(of: (measurement: M) => Histogram): Column<M>[] {
  const percentiles = [50, 90, 99, 99.9].map((percent) => ({
    name: `p${percent}_ms`,
    title: `p${percent} ms`,
    digits: 2,
    of: (measurement: M) => of(measurement).percentile(percent),
  }));
  return [...percentiles, { name: "max_ms", title: "max ms", digits: 2, of: (measurement) => of(measurement).maxMs }];
}
