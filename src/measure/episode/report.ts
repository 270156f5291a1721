/** The figures of `tendon bench episode` as a table for people and as JSON. */
import { type Align, table } from "../../std/text-table.ts";
import type { Origin } from "../origin.ts";
import { type Report, reportText } from "../report.ts";
import { shown, summary } from "../stats.ts";
import type { Measurement } from "../target.ts";
import { CAPTURE_AHEAD_MS, COMMAND_HZ, type LoopFigures, MARGIN_ROWS, PERIOD_MS } from "./loop-robot.ts";

export interface EpisodeMeasurement extends Measurement {
  readonly seconds: number;
  readonly service: LoopFigures;
  /** The same loop without any traffic. */
  readonly control: LoopFigures;
}

const PERIOD = PERIOD_MS.toFixed(1);

const MEANING = [
  `loop: each robot commands a row every 1/${COMMAND_HZ} s, at absolute deadlines; robots begin at random moments of the time of a`,
  "chunk, the same every time. One timer, in a process beside the service on the same machine, ticks for all of them.",
  `rule: a robot captures and sends its frames when the rows left are at most ceil((${CAPTURE_AHEAD_MS} ms + its slowest chunk so far) / ${PERIOD} ms) + ${MARGIN_ROWS},`,
  `and the observation ${CAPTURE_AHEAD_MS} ms later; the rows left play meanwhile, and to their end. At most one chunk waits behind the one that plays.`,
  "This rule hides any latency below a chunk's length: a robot of a slow service asks earlier, and no row is late. What it pays shows in",
  "chunk latency and in observation age: from the capture of the frames behind a row to its command.",
  "chunk latency: from sending the observation until its rows are read.",
  "rows late, no chunk: it was not there when the row was due; the robot holds, and plays on when it comes. Late tick: the chunk was",
  `there, but the timer fired more than ${PERIOD} ms after the row was due.`,
  "longest gap: between two commands of one robot. idle control: the same loop with chunks that cost nothing, before the measurement;",
  "what is late in it is the machine's own.",
];

const ALIGN: Align[] = ["left", "right", "right"];

export function episodeReport(from: Origin, measurements: readonly EpisodeMeasurement[]): Report {
  const told = measurements.map((one) => ({
    ...one,
    service: loopSummary(one.service),
    control: loopSummary(one.control),
  }));
  return {
    json: { suite: "episode", ...from, rule: MEANING.join(" "), measurements: told },
    text: reportText(
      "episode",
      from,
      told,
      ({ seconds, service, control }) => ({
        length: `${seconds} s`,
        lines: [table(loopLines(service, control), ALIGN).trimEnd()],
      }),
      MEANING,
    ),
  };
}

/** The figures of one loop, under the names of JSON. */
export function loopSummary(figures: LoopFigures) {
  const { latenciesMs, rowsDue, rowsWithoutChunk, rowsTickedLate, longestGapMs, tickLatenessMs, observationAgesMs } =
    figures;
  const [latency, ticks, ages] = [summary(latenciesMs), summary(tickLatenessMs), summary(observationAgesMs)];
  const rowsLate = rowsWithoutChunk + rowsTickedLate;
  return {
    chunks: latency.count,
    chunk_latency_p50_ms: latency.p50,
    chunk_latency_p99_ms: latency.p99,
    chunk_latency_max_ms: latency.max,
    rows_due: rowsDue,
    rows_late: rowsLate,
    rows_without_chunk: rowsWithoutChunk,
    rows_ticked_late: rowsTickedLate,
    late_share: rowsLate / rowsDue,
    longest_gap_ms: longestGapMs,
    observation_age_p50_ms: ages.p50,
    observation_age_max_ms: ages.max,
    tick_lateness_p99_ms: ticks.p99,
    tick_lateness_max_ms: ticks.max,
  };
}

type LoopSummary = ReturnType<typeof loopSummary>;

/** A line per measure, a column per loop; the idle control has no service, so no latency. */
function loopLines(service: LoopSummary, control: LoopSummary): string[][] {
  const both = (name: string, read: (told: LoopSummary) => number, digits = 0) => [
    name,
    ...[service, control].map((told) => shown(read(told), digits)),
  ];
  const latency = (name: string, ms: number) => [`chunk latency ${name}, ms`, shown(ms, 1), "-"];
  return [
    ["", "service", "idle control"],
    both("chunks", (told) => told.chunks),
    latency("p50", service.chunk_latency_p50_ms),
    latency("p99", service.chunk_latency_p99_ms),
    latency("max", service.chunk_latency_max_ms),
    both("rows due", (told) => told.rows_due),
    both("rows late", (told) => told.rows_late),
    both("  no chunk", (told) => told.rows_without_chunk),
    both("  late tick", (told) => told.rows_ticked_late),
    both("rows late, %", (told) => told.late_share * 100, 3),
    both("longest gap between commands, ms", (told) => told.longest_gap_ms, 1),
    both("observation age p50, ms", (told) => told.observation_age_p50_ms, 1),
    both("observation age max, ms", (told) => told.observation_age_max_ms, 1),
    both("tick lateness p99, ms", (told) => told.tick_lateness_p99_ms, 1),
    both("tick lateness max, ms", (told) => told.tick_lateness_max_ms, 1),
  ];
}
