/**
 * Do 64 robots on sockets always have a row to command?
 *
 * The robots are those of `tendon bench episode`: 30 Hz, an observation per chunk, inference beside execution, and before it the same
 * loop without traffic. Unlike there, a robot does not adapt to a slow service: it asks when three rows are left. The service runs
 * in a child process, models answer at once (echo), all on this machine's cores.
 *
 * In one arm robots begin at random moments of a chunk's time; it is judged. In the other all robots begin within one period, the
 * worst that can happen; it is reported only.
 */
import { type LoopFigures, PERIOD_MS } from "../src/measure/episode/loop-robot.ts";
import { loopSummary } from "../src/measure/episode/report.ts";
import { CHUNK_MS, driveEpisodes, measureEpisodes } from "../src/measure/episode/suite.ts";
import { drawnScenes, type Scenes } from "../src/measure/sample/scenes.ts";
import { Problem } from "../src/std/problem.ts";
import { type MeasuredServer, onServer } from "./measured-server.ts";
import { type Figure, judged, type Proof, type Size } from "./proof.ts";

const SIZES = {
  small: { robots: 4, seconds: 1, warmupSeconds: 1, togetherSeconds: 1 },
  full: { robots: 64, seconds: 120, warmupSeconds: 5, togetherSeconds: 20 },
} as const satisfies Record<Size, object>;
type Plan = (typeof SIZES)[Size];

/** 100 ms of rows, beside which capture, transport and inference have to be done. */
const ROWS_AHEAD = 3;
/** Asked for. None may be late where the idle control has none late. */
const LATE_SHARE_MAX = 0.001;
/** One period. Late rows alone would not show a latency below the three rows that are left. */
const LATENCY_P99_MAX_MS = 33;

const NOTE = `A robot asks when ${ROWS_AHEAD} rows (${Math.round(ROWS_AHEAD * PERIOD_MS)} ms) are left, however slow the service is. All within one period: not judged.
Observation age: from the capture of the frames behind a row to its command.
`;

export const episodes: Proof = {
  name: "episodes",
  question: "Do robots on sockets always have a row to command?",
  async run(size) {
    const plan = SIZES[size];
    const scenes = await drawnScenes(1);
    if (scenes instanceof Problem) return scenes;
    const rows = await onServer("echo", (server) => robotsFigures(server, plan, scenes));
    return rows instanceof Problem ? rows : judged(rows, { below: NOTE });
  },
};

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
    ...{ late_share: LATE_SHARE_MAX, chunk_latency_p99_ms: LATENCY_P99_MAX_MS },
    ...(lateControl === 0 ? { rows_late: 0 } : {}),
  };
  return [
    ...loopFigures(`${robots} robots, ${seconds} s, idle control`, measured.control),
    ...loopFigures(`${robots} robots, ${seconds} s`, measured.service, limits),
    ...start,
    ...loopFigures(inOnePeriod, together),
    ...startTogether,
  ];
}

/** Figures with the names of `tendon bench episode --json`. An idle control has no service and no latency. */
function loopFigures(name: string, figures: LoopFigures, limits: Readonly<Record<string, number>> = {}): Figure[] {
  const shown = Object.entries(loopSummary(figures)).filter(([key, value]) => key in limits || Number.isFinite(value));
  return shown.map(([key, value]) => {
    const [limit, isMs] = [limits[key], key.endsWith("_ms")];
    const measure = `${name}: ${key.replace(/_ms$/, "").replaceAll("_", " ")}`;
    return { measure, value, unit: isMs ? "ms" : "1", ...(limit === undefined ? {} : { limit }) };
  });
}

/** The last 1024 observations, measured by the service's clock. */
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
