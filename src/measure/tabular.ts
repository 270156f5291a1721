/** The report of a suite whose measurements are one line of figures each: the same columns as table, CSV, JSON and page. */
import { type Align, table } from "../std/text-table.ts";
import type { Histogram } from "./histogram.ts";
import type { Origin } from "./origin.ts";
import { reportPage, type Section, tableOf } from "./page/page.ts";
import { headLines, nameOf, type Report, reportCsv } from "./report.ts";
import type { Measurement } from "./target.ts";

export interface Column<M> {
  /** In JSON and CSV, its unit last. */
  readonly name: string;
  /** The head of its column in tables for people. */
  readonly title: string;
  /** Decimal places in tables for people; for numbers alone. */
  readonly digits?: number;
  /** NaN for what was not measured: a dash, null in JSON, an empty cell of CSV. */
  readonly of: (measurement: M) => number | string;
}

interface Tabular<M> {
  readonly suite: string;
  readonly question: string;
  readonly from: Origin;
  readonly measurements: readonly M[];
  readonly columns: readonly Column<M>[];
  readonly meaning: readonly string[];
  /** Pictures of the page, below its table. */
  readonly pictures: readonly Section[];
  /** Latencies of a measurement, which JSON has as a whole. */
  readonly latency?: (measurement: M) => Histogram;
}

/** The first columns of tables for people; CSV and JSON have them anyway. */
const LEADING: readonly Column<Measurement>[] = [
  { name: "device", title: "device", of: ({ device }) => device },
  { name: "robots", title: "robots", of: ({ robots }) => robots },
];

export function tabularReport<M extends Measurement>(about: Tabular<M>): Report {
  const { suite, question, from, measurements, columns, meaning, pictures, latency } = about;
  // Where no robot takes part both say nothing.
  const leading = measurements.some(({ robots }) => robots > 0) ? LEADING : [];
  const all: readonly Column<M>[] = [...leading, ...columns];
  const head = all.map(({ title }) => title);
  const lines = measurements.map((one) => all.map((column) => shown(column, one)));
  const align = all.map((column) => alignOf(column, measurements));
  const names = [...new Set(measurements.map(nameOf))];
  return {
    json: {
      suite,
      ...from,
      question,
      meaning: meaning.join(" "),
      measurements: measurements.map((one) => jsonOf(one, columns, latency)),
    },
    csv: reportCsv(
      columns.map(({ name }) => name),
      from,
      measurements,
      (one) => [columns.map((column) => csvValue(column.of(one)))],
    ),
    text: `${[...headLines(suite, from), question, "", ...names, table([head, ...lines], align), ...meaning].join("\n")}\n`,
    html: reportPage({
      suite,
      question,
      from,
      meaning,
      sections: [{ heading: "Figures", note: names.join("; "), content: [tableOf(head, lines, align)] }, ...pictures],
    }),
  };
}

function alignOf<M>({ of }: Column<M>, measurements: readonly M[]): Align {
  return measurements.some((one) => typeof of(one) === "string") ? "left" : "right";
}

function shown<M>({ of, digits = 0 }: Column<M>, measurement: M): string {
  const value = of(measurement);
  if (typeof value === "string") return value === "" ? "-" : value;
  return Number.isFinite(value) ? value.toFixed(digits) : "-";
}

/** Six digits are more than a clock's resolution. */
function csvValue(value: number | string): number | string {
  if (typeof value === "string") return value;
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : "";
}

function jsonOf<M extends Measurement>(one: M, columns: readonly Column<M>[], latency: Tabular<M>["latency"]): object {
  const { model, device, robots, reference } = one;
  const figures = columns.map((column) => {
    const value = column.of(one);
    return [column.name, typeof value === "number" && !Number.isFinite(value) ? null : value] as const;
  });
  const points = latency?.(one).points();
  const whole = points && { latency: points.map(({ share, ms }) => ({ share, ms })) };
  return { model, device, robots, reference, ...Object.fromEntries(figures), ...whole };
}
