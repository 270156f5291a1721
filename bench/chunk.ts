/**
 * What takes the time of a chunk, at 1 robot and at 8, without a model (echo) and with the bundle on the CPU? How much processor time of
 * the service does a chunk cost as robots are added? One robot is not judged, because its waiting threads sleep and wake each time.
 */
import { COLUMNS, driveChunks } from "../src/measure/chunk/load.ts";
import { chunkReport } from "../src/measure/chunk/report.ts";
import { runChunkSuite } from "../src/measure/chunk/suite.ts";
import { origin } from "../src/measure/origin.ts";
import { drawnScenes } from "../src/measure/sample/scenes.ts";
import { summary } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import { type MeasuredServer, onServer } from "./measured-server.ts";
import { processorTime, since } from "./process.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const SIZES = {
  small: { chunks: 8, robots: [1, 2], crowd: [1, 2] },
  full: { chunks: 1000, robots: [1, 8], crowd: [1, 8, 64] },
} as const;

/** Processor time of a chunk beside decoding, over all threads and on the event loop. */
const COST_MS_MAX = 1.5;
const LOOP_MS_MAX = 0.9;

export const chunk: Proof = {
  name: "chunk",
  question: "What takes the time of a chunk, station by station and end to end over HTTP?",
  async run(size) {
    const { chunks, robots, crowd } = SIZES[size];
    const measurements = await runChunkSuite({ chunks, robots, devices: ["echo", "cpu"] });
    if (measurements instanceof Problem) return measurements;
    const rows = measurements.flatMap((one): Figure[] =>
      COLUMNS.flatMap((column) => {
        const { p50, p90, p99, max } = summary(one.ms[column]);
        return Object.entries({ p50, p90, p99, max }).map(([name, value]) => ({
          measure: `${one.device} robots ${one.robots} ${column} ${name}`,
          value,
          unit: "ms",
        }));
      }),
    );
    const costs: Figure[] = [];
    for (const count of crowd) {
      const cost = await onServer("echo", (server) => costAt(server, count, chunks));
      if (cost instanceof Problem) return cost;
      costs.push(...cost);
    }
    const { text, pass = false } = judged(costs, { above: chunkReport(await origin(), measurements).text });
    return { text, rows: [...rows, ...costs], pass };
  },
};

async function costAt({ child }: MeasuredServer, robots: number, chunks: number): Promise<Figure[] | Problem> {
  const scenes = await drawnScenes(1);
  if (scenes instanceof Problem) return scenes;
  const load = { service: child.service, robots, warmup: 0, scenes };
  const warm = await driveChunks({ ...load, chunks: 10 * robots, sessionPrefix: "warm" });
  if (warm instanceof Problem) return warm;
  const before = await processorTime(child.pid);
  const driven = await driveChunks({ ...load, chunks, sessionPrefix: "cost" });
  if (driven instanceof Problem) return driven;
  const { allMs, loopMs, decodeMs } = since(before, await processorTime(child.pid));
  const figure = (name: string, ms: number, limit?: number): Figure => ({
    ...{ measure: `processor time of a chunk, echo robots ${robots}, ${name}`, value: ms / chunks, unit: "ms" },
    ...(limit === undefined || robots === 1 ? {} : { limit }),
  });
  return [
    figure("all threads", allMs),
    figure("without decoding", allMs - decodeMs, COST_MS_MAX),
    figure("event loop", loopMs, LOOP_MS_MAX),
  ];
}
