/** The figures of `tendon bench interference` for people and programs. */
import { latencyColumns } from "../load/columns.ts";
import type { Origin } from "../origin.ts";
import { distributionFigure } from "../page/distribution.ts";
import type { Report } from "../report.ts";
import { median } from "../stats.ts";
import { type Column, tabularReport } from "../tabular.ts";
import { KIND_NAMES, KINDS } from "./kinds.ts";
import { ARM_SECONDS, type InterferenceMeasurement } from "./suite.ts";

const QUESTION = "Does a robot feel what else its node does?";

const MEANING = [
  `One robot in a closed loop over HTTP, ${ARM_SECONDS} s alone, alone again, and beside each kind of work, in each round against a fresh service,`,
  "every second round backwards.",
  ...KIND_NAMES.map((kind) => `${kind[0]?.toUpperCase()}${kind.slice(1)}: ${KINDS[kind].about}.`),
  "Work/s: requests that were sent a second; failed: those whose work was not done. p99 / alone: the robot's p99 over the mean of both",
  "arms alone, of each round, the median; what the two arms alone differ by is the machine's own noise. The programs that send work run",
  "beside the service on the same cores: what they take themselves is in the figures. Outside the window: the first requests of a",
  "service, which warm it up, and the half second in which the work begins.",
];

const COLUMNS: readonly Column<InterferenceMeasurement>[] = [
  { name: "beside", title: "beside", of: ({ arm }) => arm },
  { name: "rounds", title: "rounds", of: ({ rounds }) => rounds.length },
  { name: "chunks", title: "chunks", of: ({ latency }) => latency.count },
  ...latencyColumns<InterferenceMeasurement>(({ latency }) => latency),
  { name: "p99_to_alone", title: "p99 / alone", digits: 2, of: ({ p99Ratios }) => median(p99Ratios) },
  {
    name: "work_per_second",
    title: "work/s",
    digits: 1,
    of: ({ rounds }) => median(rounds.map(({ work }) => work?.perSecond ?? Number.NaN)),
  },
  {
    name: "work_failed",
    title: "failed",
    of: ({ rounds }) => rounds.reduce((sum, { work }) => sum + (work?.failed ?? Number.NaN), 0),
  },
];

export function interferenceReport(from: Origin, measurements: readonly InterferenceMeasurement[]): Report {
  return tabularReport({
    ...{ suite: "interference", question: QUESTION, from, measurements, columns: COLUMNS, meaning: MEANING },
    latency: ({ latency }) => latency,
    pictures: [
      {
        heading: "Latency distributions",
        note: "Read upwards from a percentile: so many of the robot's chunks were read within that time. Alone is dashed.",
        content: [
          distributionFigure(
            "Latency of a chunk, over all rounds",
            measurements.map(({ arm, latency, device }) => ({
              name: `${arm} on ${device}`,
              latency,
              dashed: arm.startsWith("alone"),
            })),
          ),
        ],
      },
    ],
  });
}
