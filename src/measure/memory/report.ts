/** The figures of `tendon bench memory` for people and programs. */
import type { Origin } from "../origin.ts";
import type { Report } from "../report.ts";
import { type Column, tabularReport } from "../tabular.ts";
import type { MemoryMeasurement } from "./suite.ts";

const QUESTION = "How much memory does an idle session keep?";

const MIB = 2 ** 20;

const MEANING = [
  "Resident memory of the service's process as Linux counts it, before and after a batch of sessions, each the median of five readings.",
  "Each: growth by session. Socket: a WebSocket with an open session that waits for its first frame. HTTP: a session that has had one",
  "chunk, one request at a time; control: as many requests of one session, which keep nothing but garbage. A second batch is",
  "opened beside the first: memory that was free since the start is used up by then. Nothing is collected for the reading, so each is an upper",
  "bound, and a batch during which the service collected its garbage can have a figure below zero. Outside the window: what the model",
  "itself keeps for an episode; the load generator is another process.",
];

const COLUMNS: readonly Column<MemoryMeasurement>[] = [
  { name: "kind", title: "session", of: ({ kind }) => kind },
  { name: "batch", title: "batch", of: ({ batch }) => batch },
  { name: "before_mib", title: "before MiB", digits: 1, of: ({ beforeBytes }) => beforeBytes / MIB },
  { name: "after_mib", title: "after MiB", digits: 1, of: ({ afterBytes }) => afterBytes / MIB },
  { name: "each_kb", title: "each kB", digits: 1, of: (one) => (one.afterBytes - one.beforeBytes) / one.robots / 1000 },
];

export function memoryReport(from: Origin, measurements: readonly MemoryMeasurement[]): Report {
  return tabularReport({
    ...{ suite: "memory", question: QUESTION, from, measurements, columns: COLUMNS, meaning: MEANING },
    pictures: [],
  });
}
