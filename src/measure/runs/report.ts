/** The figures of `tendon bench runs` for people and programs. */
import { latencyColumns } from "../load/columns.ts";
import type { Origin } from "../origin.ts";
import { distributionFigure } from "../page/distribution.ts";
import type { Report } from "../report.ts";
import { type Column, tabularReport } from "../tabular.ts";
import type { RunsMeasurement } from "./suite.ts";

const QUESTION = "How fast do files of a robot's run come into run storage, and what do they cost?";

const MEANING = [
  "Each file is one PUT of random bytes; its answer says that it is durable and has its SHA-256. MB: a million bytes. Percentiles: of one",
  "file, from handing it to HTTP until it is answered. Processor: time on a core of the service's process over the measured time, all its",
  "threads. The load generator is another process on the same machine and disk. Outside the window: making the bytes, the first",
  "files of each service. How this compares with dd and sha256sum on the same disk: npm run prove runs, from a checkout.",
];

function megabytes({ fileBytes, files }: RunsMeasurement): number {
  return (fileBytes * files) / 1e6;
}

function processorMs({ processor }: RunsMeasurement): number {
  return processor?.allMs ?? Number.NaN;
}

const COLUMNS: readonly Column<RunsMeasurement>[] = [
  { name: "file_bytes", title: "file bytes", of: ({ fileBytes }) => fileBytes },
  { name: "at_once", title: "at once", of: ({ atOnce }) => atOnce },
  { name: "files", title: "files", of: ({ files }) => files },
  { name: "files_per_second", title: "files/s", digits: 1, of: ({ files, seconds }) => files / seconds },
  { name: "mb_per_second", title: "MB/s", digits: 1, of: (one) => megabytes(one) / one.seconds },
  ...latencyColumns<RunsMeasurement>(({ latency }) => latency),
  { name: "processor_ms_per_file", title: "ms/file", digits: 2, of: (one) => processorMs(one) / one.files },
  { name: "processor_ms_per_mb", title: "ms/MB", digits: 2, of: (one) => processorMs(one) / megabytes(one) },
];

export function runsReport(from: Origin, measurements: readonly RunsMeasurement[]): Report {
  const series = measurements.map(({ fileBytes, atOnce, latency }) => ({
    name: `${fileBytes / 1024} KiB, ${atOnce} at once`,
    latency,
    dashed: atOnce > 1,
  }));
  return tabularReport({
    ...{ suite: "runs", question: QUESTION, from, measurements, columns: COLUMNS, meaning: MEANING },
    latency: ({ latency }) => latency,
    pictures: [
      {
        heading: "Time until a file is durable",
        note: "Read upwards from a percentile: so many of the files were answered within that time. Several at once are dashed.",
        content: [distributionFigure("From handing a file to HTTP until it is answered", series)],
      },
    ],
  });
}
