/**
 * Do 64 robots on sockets always have a row to command, and what does a socket cost that says nothing?
 *
 * The robots are those of `tendon bench episode`: 30 Hz, an observation per chunk, inference beside execution, and before it the
 * same loop without traffic. The service runs in a child process, models answer at once (echo), all on this machine's cores. Its
 * memory is read after a full collection with no socket open: after a first shorter run of the same robots, and after the measured one.
 *
 * An idle socket has an open session and waits for its first frame. Its cost is what resident memory has more with all of them
 * than before, in a fresh process that has had some sockets already; what the process takes once, such as a larger heap, is in it.
 */
import { driveEpisodes, measureEpisodes, openSessions } from "../src/cli/bench-episode.ts";
import type { LoopFigures } from "../src/cli/control-loop.ts";
import { sampleFrames } from "../src/cli/drawing.ts";
import { loopSummary } from "../src/cli/episode-report.ts";
import { median } from "../src/cli/stats.ts";
import { table } from "../src/cli/table.ts";
import { Problem } from "../src/error.ts";
import { type MeasuredServer, startServer } from "./measured-server.ts";
import { type Figure, figureLines, type Proof, type Size, withinLimits } from "./proof.ts";

const SIZES = {
  small: { robots: 4, seconds: 1, warmupSeconds: 1, sockets: 50, judged: false },
  full: { robots: 64, seconds: 120, warmupSeconds: 30, sockets: 500, judged: true },
} as const satisfies Record<Size, object>;
type Plan = (typeof SIZES)[Size];

const MIB = 2 ** 20;
/** Asked for. None may be late where the idle control has none late. */
const LATE_SHARE_MAX = 0.001;
const SOCKET_KB_MAX = 50;
/** "Flat": what the memory proof grants over a hundred thousand requests. */
const GROWTH_MIB_MAX = 8;
const READINGS = 5;
const READING_MS = 200;
/** Opened and closed before the first reading, so that what the first sockets bring into memory is no cost of the others. */
const SOCKETS_BEFORE = 20;

export const episodes: Proof = {
  name: "episodes",
  question: "Do robots on sockets always have a row to command, and what does an idle socket cost?",
  async run(size) {
    const plan = SIZES[size];
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    const driven = await onServer((server) => robotsFigures(server, plan, [frames]));
    if (driven instanceof Problem) return driven;
    const idle = await onServer((server) => socketFigures(server, plan));
    if (idle instanceof Problem) return idle;
    const rows = [...driven, ...idle].map(({ limit, ...figure }) =>
      limit === undefined || !plan.judged ? figure : { ...figure, limit },
    );
    return { text: table(figureLines(rows), ["left", "right"]), rows, pass: withinLimits(rows) };
  },
};

async function onServer(work: (server: MeasuredServer) => Promise<Figure[] | Problem>): Promise<Figure[] | Problem> {
  const server = await startServer("echo");
  if (server instanceof Problem) return server;
  try {
    const done = await work(server);
    return done instanceof Problem ? await server.child.explain(done) : done;
  } finally {
    await server.child.stop();
  }
}

async function robotsFigures(
  server: MeasuredServer,
  { robots, seconds, warmupSeconds }: Plan,
  scenes: readonly (readonly Uint8Array[])[],
): Promise<Figure[] | Problem> {
  const load = { service: server.child.service, robots, scenes };
  const warm = await driveEpisodes({ ...load, seconds: warmupSeconds });
  if (warm instanceof Problem) return warm;
  const before = await settledBytes(server);
  if (before instanceof Problem) return before;
  const measured = await measureEpisodes({ ...load, seconds });
  if (measured instanceof Problem) return measured;
  const after = await settledBytes(server);
  if (after instanceof Problem) return after;
  const lateControl = loopSummary(measured.control).rows_late;
  const name = `${robots} robots, ${seconds} s`;
  return [
    ...loopFigures(`${name}, idle control`, measured.control),
    ...loopFigures(name, measured.service, lateControl === 0 ? 0 : undefined),
    { measure: `${name}: RSS after warm-up of ${warmupSeconds} s`, value: before / MIB, unit: "MiB" },
    { measure: `${name}: RSS at the end`, value: after / MIB, unit: "MiB" },
    { measure: `${name}: RSS growth`, value: (after - before) / MIB, unit: "MiB", limit: GROWTH_MIB_MAX },
  ];
}

function loopFigures(name: string, figures: LoopFigures, lateMax?: number): Figure[] {
  const told = loopSummary(figures);
  const isControl = name.endsWith("control");
  const figure = (measure: string, value: number, unit: string, limit?: number): Figure => ({
    ...{ measure: `${name}: ${measure}`, value, unit },
    ...(limit === undefined ? {} : { limit }),
  });
  const latencies = [
    figure("chunks", told.chunks, "1"),
    figure("chunk latency p50", told.chunk_latency_p50_ms, "ms"),
    figure("chunk latency p99", told.chunk_latency_p99_ms, "ms"),
    figure("chunk latency max", told.chunk_latency_max_ms, "ms"),
  ];
  return [
    ...(isControl ? [] : latencies),
    figure("rows due", told.rows_due, "1"),
    figure("rows late", told.rows_late, "1", lateMax),
    figure("rows late, no chunk at their deadline", told.rows_without_chunk, "1"),
    figure("rows late, tick over a period late", told.rows_ticked_late, "1"),
    figure("share of rows late", told.late_share, "1", isControl ? undefined : LATE_SHARE_MAX),
    figure("longest gap between commands", told.longest_gap_ms, "ms"),
    figure("tick lateness p99", told.tick_lateness_p99_ms, "ms"),
    figure("tick lateness max", told.tick_lateness_max_ms, "ms"),
  ];
}

async function socketFigures(server: MeasuredServer, { sockets }: Plan): Promise<Figure[] | Problem> {
  const { service } = server.child;
  const first = await openSessions(service, SOCKETS_BEFORE);
  if (first instanceof Problem) return first;
  await Promise.all(first.map(({ socket }) => socket.close()));
  const before = await settledBytes(server);
  if (before instanceof Problem) return before;
  const open = await openSessions(service, sockets);
  if (open instanceof Problem) return open;
  const after = await settledBytes(server);
  // One that was lost meanwhile would have cost nothing.
  const ends = await Promise.all(open.map(({ socket }) => socket.close()));
  const lost = ends.find((end) => end !== undefined);
  if (lost !== undefined) return lost;
  if (after instanceof Problem) return after;
  const name = `${sockets} idle sockets`;
  return [
    { measure: `${name}: RSS before`, value: before / MIB, unit: "MiB" },
    { measure: `${name}: RSS with them`, value: after / MIB, unit: "MiB" },
    { measure: `${name}: each`, value: (after - before) / sockets / 1000, unit: "kB", limit: SOCKET_KB_MAX },
  ];
}

/** Resident memory after collections, the median of some readings. */
async function settledBytes(server: MeasuredServer): Promise<number | Problem> {
  const readings: number[] = [];
  for (let reading = 0; reading < READINGS; reading += 1) {
    await Bun.sleep(READING_MS);
    const bytes = await server.residentBytes();
    if (bytes instanceof Problem) return bytes;
    readings.push(bytes);
  }
  return median(readings);
}
