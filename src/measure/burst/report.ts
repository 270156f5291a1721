/** The figures of `tendon bench burst` for people and programs. */
import { latencyColumns } from "../load/columns.ts";
import { errorsText } from "../load/tally.ts";
import type { Origin } from "../origin.ts";
import { distributionFigure } from "../page/distribution.ts";
import { type Report, shortNameOf } from "../report.ts";
import { median } from "../stats.ts";
import { type Column, tabularReport } from "../tabular.ts";
import { type BurstMeasurement, SILENCE_MS } from "./suite.ts";

const QUESTION = "When all robots ask at the same moment, how long until the first is answered, and until all are?";

const MEANING = [
  `Burst: after ${SILENCE_MS} ms without a request each robot sends one observation over HTTP, all at the same moment. First and all: from that`,
  "moment until the first answer and until the last one was read, median over the bursts; worst: the burst that took longest. Percentiles:",
  "of each chunk from the moment of its burst, over all bursts. Sending takes time as well: the load generator, another process on",
  "the same machine, writes one request after the other. Outside the window: opening the sessions, the silence, the first requests",
  "of each service, which warm it up.",
];

const COLUMNS: readonly Column<BurstMeasurement>[] = [
  { name: "bursts", title: "bursts", of: ({ bursts }) => bursts },
  { name: "first_ms", title: "first ms", digits: 2, of: ({ firstMs }) => median(firstMs) },
  { name: "all_ms", title: "all ms", digits: 2, of: ({ lastMs }) => median(lastMs) },
  { name: "all_worst_ms", title: "all, worst ms", digits: 2, of: ({ lastMs }) => Math.max(...lastMs) },
  ...latencyColumns<BurstMeasurement>(({ load }) => load.latency),
  { name: "errors", title: "errors", of: ({ load }) => errorsText(load.errors) },
];

export function burstReport(from: Origin, measurements: readonly BurstMeasurement[]): Report {
  return tabularReport({
    ...{ suite: "burst", question: QUESTION, from, measurements, columns: COLUMNS, meaning: MEANING },
    latency: ({ load }) => load.latency,
    pictures: [
      {
        heading: "When robots are answered",
        note: "Read upwards from a percentile: so many of the robots had their chunk that long after the moment of the burst.",
        content: [
          distributionFigure(
            "Time from the moment of the burst until a robot's chunk was read",
            measurements.map((one) => ({ name: shortNameOf(one), latency: one.load.latency })),
          ),
        ],
      },
    ],
  });
}
