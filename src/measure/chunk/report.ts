/** The figures of `tendon bench chunk` as a table for people and as JSON. */
import { type Align, table } from "../../std/text-table.ts";
import type { Origin } from "../origin.ts";
import { type Report, reportText } from "../report.ts";
import { summary } from "../stats.ts";
import { COLUMNS } from "./load.ts";
import type { ChunkMeasurement } from "./suite.ts";

const MEANING = [
  "decode, queue, prefill, denoise, encode: as the service measures them (timing_ms). client: from handing the ready request text to HTTP",
  "until the reply is read. rest = client - stations: transport, HTTP, the key, the wait for the durable record, scheduling.",
  "Outside the window: making the request text, taking a camera's picture, anything before the first and after the last byte. The load",
  "generator is another process on the same machine and takes its share of the cores. Closed loop: a robot waits for its chunk.",
];

const ALIGN: Align[] = ["left", "right", "right", "right", "right"];

export function chunkReport(from: Origin, measurements: readonly ChunkMeasurement[]): Report {
  return {
    json: { suite: "chunk", ...from, measurements },
    text: reportText("chunk", from, measurements, block, MEANING),
  };
}

function block({ ms, chunks, seconds }: ChunkMeasurement) {
  const lines = COLUMNS.map((name) => {
    const { p50, p90, p99, max } = summary(ms[name]);
    return [name, ...[p50, p90, p99, max].map((value) => value.toFixed(3))];
  });
  const stations = table([["ms", "p50", "p90", "p99", "max"], ...lines], ALIGN).trimEnd();
  return {
    length: `chunks ${chunks}, ${(chunks / seconds).toFixed(1)} chunks/s`,
    lines: [stations],
  };
}
