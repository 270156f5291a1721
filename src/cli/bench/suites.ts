/** The suites of `tendon bench`: the name of each, its length, its devices and its report. */
import { chunkReport } from "../../measure/chunk/report.ts";
import { runChunkSuite } from "../../measure/chunk/suite.ts";
import { episodeReport } from "../../measure/episode/report.ts";
import { runEpisodeSuite } from "../../measure/episode/suite.ts";
import { gpuReport } from "../../measure/gpu/report.ts";
import { type GpuPlan, runGpuSuite } from "../../measure/gpu/suite.ts";
import { httpReport } from "../../measure/http/report.ts";
import { RATES, runHttpSuite } from "../../measure/http/suite.ts";
import { type Origin, origin } from "../../measure/origin.ts";
import type { Report } from "../../measure/report.ts";
import type { BenchTarget } from "../../measure/target.ts";
import { Problem } from "../../std/problem.ts";

/** The given flags, with the suite's defaults for the others. The suite `gpu` alone takes those of `GpuPlan`. */
export interface SuitePlan extends BenchTarget, Pick<GpuPlan, "batchMax" | "gpu" | "within"> {
  /** In the unit of the suite's flag. */
  readonly length: number;
}

interface Suite {
  readonly about: string;
  /** The flag for the length of a measurement. */
  readonly flag: "chunks" | "seconds";
  readonly usual: number;
  readonly max: number;
  /** Measures a service, and not a device by itself. */
  readonly served: boolean;
  readonly devices: readonly string[];
  run(plan: SuitePlan): Promise<Report | Problem>;
}

export const SUITE_NAMES = ["chunk", "episode", "http", "gpu"] as const;
export type SuiteName = (typeof SUITE_NAMES)[number];

export const SUITES: Readonly<Record<SuiteName, Suite>> = {
  chunk: {
    about: "where the time of a chunk goes, station by station",
    flag: "chunks",
    usual: 500,
    max: 10_000_000,
    served: true,
    devices: ["echo", "cpu"],
    run: (plan) => reported(runChunkSuite({ ...plan, chunks: plan.length }), chunkReport),
  },
  episode: {
    about: "whether a robot's control loop ever lacks a row",
    // The lateness of every tick is kept until the end: 900,000 numbers with 8 robots.
    flag: "seconds",
    usual: 10,
    max: 3_600,
    served: true,
    devices: ["echo", "cpu"],
    run: (plan) => reported(runEpisodeSuite({ ...plan, seconds: plan.length }), episodeReport),
  },
  http: {
    about: "latency and throughput over HTTP, closed loops and open loops at fixed rates",
    flag: "seconds",
    usual: 10,
    max: 3_600,
    served: true,
    devices: ["echo"],
    run: (plan) => reported(runHttpSuite({ ...plan, seconds: plan.length, rates: RATES }), httpReport),
  },
  gpu: {
    about: "a device without a service: stations and batches",
    flag: "chunks",
    usual: 50,
    max: 100_000,
    served: false,
    devices: ["auto"],
    run: (plan) => reported(runGpuSuite({ ...plan, chunks: plan.length }), gpuReport),
  },
};

async function reported<M>(
  measured: Promise<readonly M[] | Problem>,
  report: (from: Origin, measurements: readonly M[]) => Report,
): Promise<Report | Problem> {
  const measurements = await measured;
  return measurements instanceof Problem ? measurements : report(await origin(), measurements);
}
