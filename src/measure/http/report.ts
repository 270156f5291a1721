/** The figures of `tendon bench http` for people and programs. */
import { REFUSED_PAUSE_MS } from "../load/closed-loop.ts";
import { latencyColumns } from "../load/columns.ts";
import { errorsText, GOOD_MS } from "../load/tally.ts";
import type { Origin } from "../origin.ts";
import { distributionFigure } from "../page/distribution.ts";
import type { Report } from "../report.ts";
import { type Column, tabularReport } from "../tabular.ts";
import { caseName, type HttpMeasurement } from "./suite.ts";

const QUESTION = "How long does a robot wait for its chunk over HTTP, and how many chunks a second come in time?";

const MEANING = [
  "Closed loop: a robot sends its next observation when its chunk is read. Latency: from handing the request to HTTP until the reply is",
  "read. Open loop: requests are due at fixed times, whatever the service does; latency counts from the moment at which a request was",
  "due, so that waiting is not hidden; a request takes a robot that waits for nothing, or one more robot. Each robot has a session.",
  `Latencies are those of chunks. Chunks/s: until the last answer. In time/s: chunks within ${GOOD_MS} ms of when they were due, which is how`,
  `long a chunk plays. Errors: replies without a chunk, by code; a robot of a closed loop waits ${REFUSED_PAUSE_MS} ms after one. Sent late: by how much`,
  "the load generator itself was behind, p99; it is a part of the latency. The load generator is another process on the same machine,",
  "takes its share of the cores, and has at most 256 requests on the wire; others wait in it, which counts. Outside the window:",
  "taking a picture, the first requests of each service, which warm it up.",
];

const COLUMNS: readonly Column<HttpMeasurement>[] = [
  { name: "loop", title: "loop", of: ({ loop }) => loop },
  { name: "due_per_second", title: "due/s", of: ({ perSecond }) => perSecond ?? Number.NaN },
  { name: "seconds", title: "s", of: ({ seconds }) => seconds },
  { name: "requests", title: "requests", of: ({ requests }) => requests },
  { name: "chunks_per_second", title: "chunks/s", digits: 1, of: ({ chunksPerSecond }) => chunksPerSecond },
  { name: "good_per_second", title: "in time/s", digits: 1, of: ({ goodPerSecond }) => goodPerSecond },
  ...latencyColumns<HttpMeasurement>(({ latency }) => latency),
  { name: "sent_late_p99_ms", title: "sent late", digits: 2, of: ({ sendLateness }) => sendLateness.percentile(99) },
  { name: "errors", title: "errors", of: ({ errors }) => errorsText(errors) },
];

export function httpReport(from: Origin, measurements: readonly HttpMeasurement[]): Report {
  const several = new Set(measurements.map(({ device }) => device)).size > 1;
  const series = measurements.map((one) => ({
    name: several ? `${one.device}: ${caseName(one)}` : caseName(one),
    latency: one.latency,
    dashed: one.loop === "open",
  }));
  return tabularReport({
    ...{ suite: "http", question: QUESTION, from, measurements, columns: COLUMNS, meaning: MEANING },
    latency: ({ latency }) => latency,
    pictures: [
      {
        heading: "Latency distributions",
        note: "Read upwards from a percentile: so many of the requests were answered within that time. Open loops are dashed.",
        content: [distributionFigure("Latency of a chunk, from when its request was due", series)],
      },
    ],
  });
}
