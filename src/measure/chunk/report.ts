/** The figures of `tendon bench chunk` as a table for people, as JSON and as CSV. */
import { type Align, table } from "../../std/text-table.ts";
import type { Origin } from "../origin.ts";
import { type Report, reportCsv, reportText } from "../report.ts";
import { summary } from "../stats.ts";
import { COLUMNS } from "./load.ts";
import type { ChunkMeasurement } from "./suite.ts";

const WINDOW = [
  "decode, queue, prefill, denoise, encode: as the service measures them (timing_ms). client: from handing the ready request text to HTTP",
  "until the reply is read. rest = client - stations: transport, HTTP, the key, the wait for the durable record, scheduling.",
  "Outside the window: making the request text, taking a camera's picture, anything before the first and after the last byte; the load",
  "generator is another process on the same machine and takes its share of the cores. Closed loop: a robot waits for its chunk.",
];

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
  };
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
