/**
 * Do 64 robots on sockets always have a row to command, does memory stay flat meanwhile, and what does an idle socket cost?
 *
 * The robots are those of `tendon bench episode`: 30 Hz, an observation per chunk, inference beside execution, and before it the same
 * loop without traffic. Unlike there, a robot does not adapt to a slow service: it asks when three rows are left. The service runs
 * in a child process, models answer at once (echo), all on this machine's cores.
 *
 * Two arms: robots that begin at random moments of a chunk's time, which is judged, and robots that all begin within one period, the
 * worst that can happen, which is reported only. Memory: socket-memory.ts, each part in a service of its own.
 */

import { type LoopFigures, PERIOD_MS } from "../src/measure/episode/loop-robot.ts";
import { loopSummary } from "../src/measure/episode/report.ts";
import { CHUNK_MS, driveEpisodes, measureEpisodes } from "../src/measure/episode/suite.ts";
import { drawnScenes, type Scenes } from "../src/measure/sample/scenes.ts";
import { Problem } from "../src/std/problem.ts";
import { type MeasuredServer, startServer } from "./measured-server.ts";
import { type Figure, judged, type Proof, type Size } from "./proof.ts";
import { memoryIdle, memoryInUse } from "./socket-memory.ts";

const SIZES = {
  small: { robots: 4, seconds: 1, warmupSeconds: 1, togetherSeconds: 1, chunks: 100, sockets: 50 },
  full: { robots: 64, seconds: 120, warmupSeconds: 5, togetherSeconds: 20, chunks: 50_000, sockets: 500 },
} as const satisfies Record<Size, object>;
type Plan = (typeof SIZES)[Size];

/** 100 ms of rows, beside which capture, transport and inference have to be done. */
const ROWS_AHEAD = 3;
/** Asked for. None may be late where the idle control has none late. */
const LATE_SHARE_MAX = 0.001;
/** One period. Late rows alone would not show a latency below the three rows that are left. */
const LATENCY_P99_MAX_MS = 33;

const NOTE = `A robot asks when ${ROWS_AHEAD} rows (${Math.round(ROWS_AHEAD * PERIOD_MS)} ms) are left, however slow the service is. All within one period: not judged.
Observation age: from the capture of the frames behind a row to its command. Memory is read while the sockets are open.
`;

export const episodes: Proof = {
  name: "episodes",
  question: "Do robots on sockets always have a row to command, is memory flat, and what does an idle socket cost?",
  async run(size) {
    const plan = SIZES[size];
    const scenes = await drawnScenes(1);
    if (scenes instanceof Problem) return scenes;
    const rows: Figure[] = [];
    for (const part of [
      (server: MeasuredServer) => robotsFigures(server, plan, scenes),
      (server: MeasuredServer) => memoryInUse(server, plan.robots, plan.chunks, scenes),
      (server: MeasuredServer) => memoryIdle(server, plan.sockets),
    ]) {
      const figures = await onServer(part);
      if (figures instanceof Problem) return figures;
      rows.push(...figures);
    }
    return judged(rows, { below: NOTE });
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

async function robotsFigures(server: MeasuredServer, plan: Plan, scenes: Scenes): Promise<Figure[] | Problem> {
  const { robots, seconds, warmupSeconds, togetherSeconds } = plan;
  const load = { service: server.child.service, robots, scenes, rowsAhead: ROWS_AHEAD, spreadMs: CHUNK_MS };
  const warm = await driveEpisodes({ ...load, seconds: warmupSeconds });
  if (warm instanceof Problem) return warm;
  const measured = await measureEpisodes({ ...load, seconds });
  if (measured instanceof Problem) return measured;
  const start = await startFigures(`${robots} robots, ${seconds} s`, server);
  if (start instanceof Problem) return start;
  const together = await driveEpisodes({ ...load, seconds: togetherSeconds, spreadMs: PERIOD_MS });
  if (together instanceof Problem) return together;
  const inOnePeriod = `${robots} robots, all within one period, ${togetherSeconds} s`;
  const startTogether = await startFigures(inOnePeriod, server);
  if (startTogether instanceof Problem) return startTogether;
  const lateControl = loopSummary(measured.control).rows_late;
  const limits = {
    ...{ "share of rows late": LATE_SHARE_MAX, "chunk latency p99": LATENCY_P99_MAX_MS },
    ...(lateControl === 0 ? { "rows late": 0 } : {}),
  };
  return [
    ...rowFigures(`${robots} robots, ${seconds} s, idle control`, measured.control, {}),
    ...latencyFigures(`${robots} robots, ${seconds} s`, measured.service, limits),
    ...rowFigures(`${robots} robots, ${seconds} s`, measured.service, limits),
    ...start,
    ...latencyFigures(inOnePeriod, together, {}),
    ...rowFigures(inOnePeriod, together, {}),
    ...startTogether,
  ];
}

/** By measure. */
type Limits = Readonly<Record<string, number>>;

function figure(name: string, limits: Limits, measure: string, value: number, unit: string): Figure {
  const limit = limits[measure];
  return { measure: `${name}: ${measure}`, value, unit, ...(limit === undefined ? {} : { limit }) };
}

function latencyFigures(name: string, figures: LoopFigures, limits: Limits): Figure[] {
  const told = loopSummary(figures);
  return [
    figure(name, limits, "chunks", told.chunks, "1"),
    figure(name, limits, "chunk latency p50", told.chunk_latency_p50_ms, "ms"),
    figure(name, limits, "chunk latency p99", told.chunk_latency_p99_ms, "ms"),
    figure(name, limits, "chunk latency max", told.chunk_latency_max_ms, "ms"),
    figure(name, limits, "observation age p50", told.observation_age_p50_ms, "ms"),
    figure(name, limits, "observation age max", told.observation_age_max_ms, "ms"),
  ];
}

function rowFigures(name: string, figures: LoopFigures, limits: Limits): Figure[] {
  const told = loopSummary(figures);
  return [
    figure(name, limits, "rows due", told.rows_due, "1"),
    figure(name, limits, "rows late", told.rows_late, "1"),
    figure(name, limits, "rows late, no chunk at their deadline", told.rows_without_chunk, "1"),
    figure(name, limits, "rows late, tick over a period late", told.rows_ticked_late, "1"),
    figure(name, limits, "share of rows late", told.late_share, "1"),
    figure(name, limits, "longest gap between commands", told.longest_gap_ms, "ms"),
    figure(name, limits, "tick lateness p99", told.tick_lateness_p99_ms, "ms"),
    figure(name, limits, "tick lateness max", told.tick_lateness_max_ms, "ms"),
  ];
}

/** By the service's clock, of the last 1024 observations. */
async function startFigures(name: string, server: MeasuredServer): Promise<Figure[] | Problem> {
  const start = await server.modelStart("episode");
  if (start instanceof Problem) return start;
  const { p50, p99, max } = start;
  const figures = { p50, p99, greatest: max };
  return Object.entries(figures).map(([which, value]) => ({
    measure: `${name}: observation to model's start, service's clock, ${which}`,
    value,
    unit: "ms",
  }));
}
