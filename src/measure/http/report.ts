/** The figures of `tendon bench http` as a table for people and as JSON. */
import { type Align, table } from "../../std/text-table.ts";
import { REFUSED_PAUSE_MS } from "../load/loops.ts";
import { errorsText, GOOD_MS } from "../load/tally.ts";
import type { Origin } from "../origin.ts";
import { headLines, nameOf, type Report } from "../report.ts";
import { percentile, shown } from "../stats.ts";
import type { HttpMeasurement } from "./suite.ts";

const QUESTION = "How long does a robot wait for its chunk over HTTP, and how many chunks a second come in time?";

const MEANING = [
  "Closed loop: a robot sends its next observation when its chunk is read. Latency: from handing the request to HTTP until the reply is",
  "read. Open loop: requests are due at fixed times, whatever the service does; latency counts from the moment at which a request was",
  "due, so that waiting is not hidden. A request takes a robot that waits for nothing, or one more robot. Each robot has a session.",
  `Latencies are those of chunks. Chunks/s: until the last answer. In time/s: chunks within ${GOOD_MS} ms of when they were due, which is how`,
  `long a chunk plays. Errors: replies without a chunk, by code; a robot of a closed loop waits ${REFUSED_PAUSE_MS} ms after one. Sent late: by how much`,
  "the load generator itself was behind, p99; it is a part of the latency. The load generator is another process on the same machine,",
  "takes its share of the cores, and has at most 256 requests on the wire; others wait in it, which counts. Outside the window:",
  "taking a picture, the first requests of each service, which warm it up.",
];

interface Column {
  /** In JSON, its unit last. */
  readonly name: string;
  /** In the table. */
  readonly title: string;
  readonly digits?: number;
  /** NaN for what was not measured: a dash, null in JSON. */
  readonly of: (measurement: HttpMeasurement) => number | string;
}

const latency = (name: string, percent: number): Column => ({
  ...{ name: `${name}_ms`, title: `${name} ms`, digits: 2 },
  of: ({ latenciesMs }) => percentile(latenciesMs, percent),
});

const COLUMNS: readonly Column[] = [
  { name: "device", title: "device", of: ({ device }) => device },
  { name: "robots", title: "robots", of: ({ robots }) => robots },
  { name: "loop", title: "loop", of: ({ loop }) => loop },
  { name: "due_per_second", title: "due/s", of: ({ perSecond }) => perSecond ?? Number.NaN },
  { name: "seconds", title: "s", of: ({ seconds }) => seconds },
  { name: "requests", title: "requests", of: ({ requests }) => requests },
  { name: "chunks_per_second", title: "chunks/s", digits: 1, of: ({ chunksPerSecond }) => chunksPerSecond },
  { name: "good_per_second", title: "in time/s", digits: 1, of: ({ goodPerSecond }) => goodPerSecond },
  ...[50, 90, 99, 99.9].map((percent) => latency(`p${percent}`, percent)),
  latency("max", 100),
  {
    ...{ name: "sent_late_p99_ms", title: "sent late", digits: 2 },
    of: ({ sendLatenessMs }) => percentile(sendLatenessMs, 99),
  },
  { name: "errors", title: "errors", of: ({ errors }) => errorsText(errors) },
];
const TEXTS = ["device", "loop", "errors"];
const ALIGN = COLUMNS.map(({ name }): Align => (TEXTS.includes(name) ? "left" : "right"));

export function httpReport(from: Origin, measurements: readonly HttpMeasurement[]): Report {
  const lines = measurements.map((one) => COLUMNS.map((column) => cell(column, one)));
  const figures = table([COLUMNS.map(({ title }) => title), ...lines], ALIGN);
  const names = new Set(measurements.map(nameOf));
  return {
    json: {
      ...{ suite: "http", ...from, question: QUESTION, meaning: MEANING.join(" ") },
      measurements: measurements.map(jsonOf),
    },
    text: `${[...headLines("http", from), QUESTION, "", ...names, figures, ...MEANING].join("\n")}\n`,
  };
}

function cell({ of, digits = 0 }: Column, measurement: HttpMeasurement): string {
  const value = of(measurement);
  return typeof value === "number" ? shown(value, digits) : value || "-";
}

function jsonOf(one: HttpMeasurement): object {
  const figures = COLUMNS.map((column) => {
    const value = column.of(one);
    return [column.name, typeof value === "number" && !Number.isFinite(value) ? null : value] as const;
  });
  return { model: one.model, reference: one.reference, ...Object.fromEntries(figures) };
}
