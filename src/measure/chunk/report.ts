/** The figures of `tendon bench chunk` as a table for people, as JSON and as CSV. */
import { type Align, table } from "../../std/text-table.ts";
import { Histogram } from "../histogram.ts";
import type { Origin } from "../origin.ts";
import { distributionFigure } from "../page/distribution.ts";
import { reportPage, type Section, tableOf } from "../page/page.ts";
import { type Request, waterfallFigure } from "../page/waterfall.ts";
import { nameOf, type Report, reportCsv, reportText, shortNameOf } from "../report.ts";
import { percentile, summary } from "../stats.ts";
import { COLUMNS } from "./load.ts";
import type { ChunkMeasurement } from "./suite.ts";

const WINDOW = [
  "decode, queue, prefill, denoise, encode: as the service measures them (timing_ms). client: from handing the ready request text to HTTP",
  "until the reply is read. rest = client - stations: transport, HTTP, the key, the wait for the durable record, scheduling.",
  "Outside the window: making the request text, taking a camera's picture, anything before the first and after the last byte; the load",
  "generator is another process on the same machine and takes its share of the cores. Closed loop: a robot waits for its chunk.",
];

const QUESTION = "Where does the time of a chunk go, station by station?";

const ALIGN: Align[] = ["left", "right", "right", "right", "right"];
const CSV = ["chunks", "chunks_per_second", "station", "p50_ms", "p90_ms", "p99_ms", "max_ms", "actions_sha256"];

export function chunkReport(from: Origin, measurements: readonly ChunkMeasurement[]): Report {
  return {
    json: { suite: "chunk", ...from, measurements },
    csv: reportCsv(CSV, from, measurements, (one) => {
      const rate = (one.chunks / one.seconds).toFixed(2);
      return stationCells(one).map((cells) => [one.chunks, rate, ...cells, one.actionsSha256]);
    }),
    text: reportText("chunk", from, measurements, block, WINDOW),
    html: reportPage({
      ...{ suite: "chunk", question: QUESTION, from, meaning: WINDOW },
      sections: [distributions(measurements), ...measurements.map(stations)],
    }),
  };
}

function distributions(measurements: readonly ChunkMeasurement[]): Section {
  const all = measurements.map((one) => ({ name: shortNameOf(one), latency: Histogram.of(one.ms.client) }));
  return {
    heading: "Latency distributions",
    note: "Read upwards from a percentile: so many of the chunks were read within that time after their request was sent.",
    content: [distributionFigure("Latency of a chunk as its robot sees it", all)],
  };
}

/** The table of a measurement, and where the time of its median and of its slowest request went. */
function stations(one: ChunkMeasurement): Section {
  const { client } = one.ms;
  const sorted = client.toSorted((a, b) => a - b);
  const request = (name: string, ms: number) => requestOf(one, name, client.indexOf(ms));
  return {
    heading: shortNameOf(one),
    note: `${nameOf(one)}: ${block(one).length}`,
    content: [
      tableOf(["ms", "p50", "p90", "p99", "max"], stationCells(one), ALIGN),
      waterfallFigure(
        "The median request and the slowest one, on one scale of time. The rest lies partly before the stations.",
        [request("Median request", percentile(sorted, 50)), request("Slowest request", percentile(sorted, 100))],
      ),
    ],
  };
}

function requestOf({ ms }: ChunkMeasurement, name: string, index: number): Request {
  const stations = COLUMNS.filter((column) => column !== "client");
  const parts = stations.map((station) => ({ name: station, ms: ms[station][index] ?? Number.NaN }));
  return { name, totalMs: ms.client[index] ?? Number.NaN, parts };
}

function block(one: ChunkMeasurement) {
  const stations = table([["ms", "p50", "p90", "p99", "max"], ...stationCells(one)], ALIGN).trimEnd();
  return {
    length: `chunks ${one.chunks}, ${(one.chunks / one.seconds).toFixed(1)} chunks/s`,
    lines: [stations, `actions sha256 ${one.actionsSha256.slice(0, 16)}`],
  };
}

/** Name and percentiles of each station. */
function stationCells({ ms }: ChunkMeasurement): string[][] {
  return COLUMNS.map((name) => {
    const { p50, p90, p99, max } = summary(ms[name]);
    return [name, ...[p50, p90, p99, max].map((value) => value.toFixed(3))];
  });
}
