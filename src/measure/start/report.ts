/** The figures of `tendon bench start` for people and programs. */
import type { Origin } from "../origin.ts";
import { chartFigure } from "../page/chart.ts";
import type { Report } from "../report.ts";
import { median } from "../stats.ts";
import { type Column, tabularReport } from "../tabular.ts";
import type { StartMeasurement } from "./suite.ts";

const QUESTION = "How long until a service serves, and is its first request slower than its hundredth?";

/** Of a hundred requests the last ten stand for the hundredth, whose own time is one throw of the dice. */
const LAST = 10;

const MEANING = [
  "Cold: with an empty home folder; an executable unpacks its libraries and bundles first. Warm: started again in the same folder. In a",
  "checkout nothing is unpacked, and both are alike. Ready: from the start of the process until its ready line is read, all models loaded",
  "and warmed; median of the rounds. Then one robot sends its observations over HTTP one after the other: the first, the tenth, and the",
  `last, which is the median of the last ${LAST}; each the median of the rounds. The data folder is new at each start.`,
  "The load generator itself is warm from the second round on, so that a median needs three of them.",
  "Outside the window: the disk's cache, which has the files already.",
];

function nth(request: number): (one: StartMeasurement) => number {
  return ({ requestMs }) => median(requestMs.flatMap((round) => round[request - 1] ?? []));
}

function lastMs({ requestMs }: StartMeasurement): number {
  return median(requestMs.map((round) => median(round.slice(-LAST))));
}

const COLUMNS: readonly Column<StartMeasurement>[] = [
  { name: "start", title: "start", of: ({ start }) => start },
  { name: "rounds", title: "rounds", of: ({ rounds }) => rounds },
  { name: "ready_ms", title: "ready ms", digits: 0, of: ({ readyMs }) => median(readyMs) },
  { name: "ready_worst_ms", title: "worst", digits: 0, of: ({ readyMs }) => Math.max(...readyMs) },
  { name: "first_ms", title: "first ms", digits: 2, of: nth(1) },
  { name: "second_ms", title: "second ms", digits: 2, of: nth(2) },
  { name: "tenth_ms", title: "tenth ms", digits: 2, of: nth(10) },
  { name: "last_ms", title: "last ms", digits: 2, of: lastMs },
  { name: "first_to_last", title: "first / last", digits: 2, of: (one) => nth(1)(one) / lastMs(one) },
];

export function startReport(from: Origin, measurements: readonly StartMeasurement[]): Report {
  const counts = measurements.map(({ requestMs }) => Math.max(0, ...requestMs.map((round) => round.length)));
  const ticks = [1, 2, 5, 10, 20, 50, 100]
    .filter((at) => at <= Math.max(1, ...counts))
    .map((at) => ({ at, text: String(at) }));
  return tabularReport({
    ...{ suite: "start", question: QUESTION, from, measurements, columns: COLUMNS, meaning: MEANING },
    pictures: [
      {
        heading: "The first requests",
        note: "A flat line is what is wanted: no request pays for those that come after it.",
        content: [
          chartFigure({
            caption: "Latency of a robot's requests in their order after the start, median of the rounds",
            x: { title: "request", scale: "log", ticks },
            y: { title: "ms", scale: "linear" },
            series: measurements.map((one, at) => ({
              name: `${one.start} on ${one.device}`,
              points: Array.from({ length: counts[at] ?? 0 }, (_, index) => [index + 1, nth(index + 1)(one)] as const),
              dashed: one.start === "cold",
            })),
          }),
        ],
      },
    ],
  });
}
