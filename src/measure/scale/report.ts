/** The figures of `tendon bench scale` for people and programs. */
import { latencyColumns } from "../load/columns.ts";
import { errorsText } from "../load/tally.ts";
import type { Origin } from "../origin.ts";
import { chartFigure, type Series } from "../page/chart.ts";
import { distributionFigure } from "../page/distribution.ts";
import type { ProcessorTime } from "../process.ts";
import { type Report, shortNameOf } from "../report.ts";
import { type Column, tabularReport } from "../tabular.ts";
import type { ScaleMeasurement } from "./suite.ts";

const QUESTION = "What does a chunk cost as robots are added?";

const MEANING = [
  "Processor ms/chunk: time on a core of the service's process over the measured time, by chunk that was answered, as Linux counts it;",
  "all: of all its threads; decode: of those that decode and resize frames; loop: of the thread that runs the event loop, which no second",
  "core can help. Of a thread that ended meanwhile nothing is counted. Closed loop over HTTP, a session for each robot: when the machine",
  "is full, latency grows with the number of robots; the cost of a chunk should not. Resident: memory of the process at the end. The load",
  "generator is another process on the same machine: its processor time is not counted, but it takes its share of the cores.",
  "Outside the window: the first requests of each service, which warm it up.",
];

function perChunk({ processor, chunks }: ScaleMeasurement, of: keyof ProcessorTime): number {
  return processor === undefined ? Number.NaN : processor[of] / chunks;
}

const COLUMNS: readonly Column<ScaleMeasurement>[] = [
  { name: "seconds", title: "s", of: ({ seconds }) => seconds },
  { name: "chunks", title: "chunks", of: ({ chunks }) => chunks },
  { name: "chunks_per_second", title: "chunks/s", digits: 1, of: ({ chunksPerSecond }) => chunksPerSecond },
  { name: "processor_ms_per_chunk", title: "all ms/chunk", digits: 2, of: (one) => perChunk(one, "allMs") },
  { name: "decode_ms_per_chunk", title: "decode ms/chunk", digits: 2, of: (one) => perChunk(one, "decodeMs") },
  { name: "loop_ms_per_chunk", title: "loop ms/chunk", digits: 2, of: (one) => perChunk(one, "loopMs") },
  ...latencyColumns<ScaleMeasurement>(({ latency }) => latency),
  { name: "resident_mib", title: "resident MiB", of: (one) => one.residentBytes / 2 ** 20 },
  { name: "errors", title: "errors", of: ({ errors }) => errorsText(errors) },
];

export function scaleReport(from: Origin, measurements: readonly ScaleMeasurement[]): Report {
  const devices = [...new Set(measurements.map(({ device }) => device))];
  const ticks = [...new Set(measurements.map(({ robots }) => robots))].map((at) => ({ at, text: String(at) }));
  const lines = (named: string, of: (one: ScaleMeasurement) => number): Series[] =>
    devices.map((device) => ({
      name: devices.length > 1 ? `${device}: ${named}` : named,
      points: measurements
        .filter((one) => one.device === device && Number.isFinite(of(one)))
        .map((one) => [one.robots, of(one)] as const),
      dots: true,
    }));
  const robots = { title: "robots", scale: "log", ticks } as const;
  return tabularReport({
    ...{ suite: "scale", question: QUESTION, from, measurements, columns: COLUMNS, meaning: MEANING },
    latency: ({ latency }) => latency,
    pictures: [
      {
        heading: "Cost of a chunk",
        note: "Flat lines are what is wanted: a robot more costs what the first one did.",
        content: [
          chartFigure({
            caption: "Processor time of the service for each chunk, by number of robots",
            x: robots,
            y: { title: "ms", scale: "linear" },
            series: [
              ...lines("all threads", (one) => perChunk(one, "allMs")),
              ...lines("event loop's thread", (one) => perChunk(one, "loopMs")),
            ],
          }),
        ],
      },
      {
        heading: "Latency",
        content: [
          chartFigure({
            caption: "Latency of a chunk, by number of robots",
            x: robots,
            y: { title: "ms", scale: "log" },
            series: [
              ...lines("p50", ({ latency }) => latency.percentile(50)),
              ...lines("p99", ({ latency }) => latency.percentile(99)),
            ],
          }),
          distributionFigure(
            "Latency distributions",
            measurements.map((one) => ({ name: shortNameOf(one), latency: one.latency })),
          ),
        ],
      },
    ],
  });
}
