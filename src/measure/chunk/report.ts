/** The figures of `tendon bench chunk` as a table for people and as CSV for `bench/results/`. */

import { type Align, table } from "../../std/text-table.ts";
import { csvCell, type Origin, originCells, originLines } from "../origin.ts";
import { summary } from "../stats.ts";
import { COLUMNS, type Measured } from "./load.ts";

export interface Measurement extends Measured {
  readonly model: string;
  /** `echo`, `cpu`, or `as configured` for a service that was already running. */
  readonly device: string;
  readonly robots: number;
  readonly chunks: number;
}

const WINDOW = [
  "decode, queue, prefill, denoise, encode: as the service measures them (timing_ms). client: from handing the ready request text to HTTP",
  "until the reply is read. rest = client - stations: transport, HTTP, JSON, base64, checks, scheduling.",
  "Outside the window: making the request text, taking a camera's picture, anything before the first and after the last byte; the load",
  "generator is another process on the same machine and takes its share of the cores. Closed loop: a robot waits for its chunk.",
];

export function reportText(from: Origin, measurements: readonly Measurement[]): string {
  const parts = originLines("chunk", from);
  for (const one of measurements) {
    const rate = (one.chunks / one.seconds).toFixed(1);
    const note = one.reference ? ", reference bundle (random weights)" : "";
    parts.push(
      "",
      `${one.model} on ${one.device}${note}: robots ${one.robots}, chunks ${one.chunks}, ${rate} chunks/s`,
    );
    const rows = COLUMNS.map((name) => {
      const { p50, p90, p99, max } = summary(one.ms[name]);
      return [name, ...[p50, p90, p99, max].map((value) => value.toFixed(3))];
    });
    const align: Align[] = ["left", "right", "right", "right", "right"];
    parts.push(table([["ms", "p50", "p90", "p99", "max"], ...rows], align).trimEnd());
    parts.push(`actions sha256 ${one.actionsSha256.slice(0, 16)}`);
  }
  return `${[...parts, "", ...WINDOW].join("\n")}\n`;
}

const HEAD =
  "date,commit,versions,cpu,cores,gpu,model,device,robots,chunks,chunks_per_second,station,p50_ms,p90_ms,p99_ms,max_ms,actions_sha256";

export function csvText(from: Origin, measurements: readonly Measurement[]): string {
  const lines = measurements.flatMap((one) =>
    COLUMNS.map((name) => {
      const { p50, p90, p99, max } = summary(one.ms[name]);
      const rate = (one.chunks / one.seconds).toFixed(2);
      const times = [p50, p90, p99, max].map((value) => value.toFixed(3));
      const head = [...originCells(from), one.model, one.device, one.robots, one.chunks, rate];
      return [...head, name, ...times, one.actionsSha256].map(csvCell).join(",");
    }),
  );
  return `${[HEAD, ...lines].join("\n")}\n`;
}
