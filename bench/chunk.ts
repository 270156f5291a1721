/** Where does the time of a chunk go, at 1 robot and at 8, without a model (echo) and with the bundle on the CPU? */

import { COLUMNS } from "../src/measure/chunk/load.ts";
import { chunkReport } from "../src/measure/chunk/report.ts";
import { runChunkSuite } from "../src/measure/chunk/suite.ts";
import { origin } from "../src/measure/origin.ts";
import { summary } from "../src/measure/stats.ts";
import { Problem } from "../src/std/problem.ts";
import type { Figure, Proof } from "./proof.ts";

const SIZES = {
  small: { chunks: 8, robots: [1, 2] },
  full: { chunks: 1000, robots: [1, 8] },
} as const;

export const chunk: Proof = {
  name: "chunk",
  question: "Where does the time of a chunk go, station by station and end to end over HTTP?",
  async run(size) {
    const { chunks, robots } = SIZES[size];
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
    return { text: chunkReport(await origin(), measurements).text, rows };
  },
};
