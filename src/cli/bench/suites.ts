/** The suites of `tendon bench`: what each is called, how long it measures, on what, and how its report is made. */
import type { EpisodeWriter } from "../../client/episode-log/write.ts";
import { burstReport } from "../../measure/burst/report.ts";
import { runBurstSuite } from "../../measure/burst/suite.ts";
import { chunkReport } from "../../measure/chunk/report.ts";
import { runChunkSuite } from "../../measure/chunk/suite.ts";
import { episodeReport } from "../../measure/episode/report.ts";
import { runEpisodeSuite } from "../../measure/episode/suite.ts";
import { gpuReport } from "../../measure/gpu/report.ts";
import { runGpuSuite } from "../../measure/gpu/suite.ts";
import { httpReport } from "../../measure/http/report.ts";
import { RATES, runHttpSuite } from "../../measure/http/suite.ts";
import { interferenceReport } from "../../measure/interference/report.ts";
import { runInterferenceSuite } from "../../measure/interference/suite.ts";
import { llmReport } from "../../measure/llm/report.ts";
import { runLlmSuite } from "../../measure/llm/suite.ts";
import { memoryReport } from "../../measure/memory/report.ts";
import { runMemorySuite } from "../../measure/memory/suite.ts";
import { type Origin, origin } from "../../measure/origin.ts";
import type { Report } from "../../measure/report.ts";
import { runsReport } from "../../measure/runs/report.ts";
import { runRunsSuite } from "../../measure/runs/suite.ts";
import { scaleReport } from "../../measure/scale/report.ts";
import { doublings, runScaleSuite } from "../../measure/scale/suite.ts";
import { startReport } from "../../measure/start/report.ts";
import { runStartSuite } from "../../measure/start/suite.ts";
import type { BenchTarget } from "../../measure/target.ts";
import { Problem } from "../../std/problem.ts";
import type { DevicePlan } from "./device-flags.ts";

/** What was asked for, with the suite's usual values where nothing was. */
export interface SuitePlan extends BenchTarget, DevicePlan {
  /** In the unit of the suite's own flag. */
  readonly length: number;
  /** Of the open loops, requests a second. */
  readonly rate: number | undefined;
  readonly recording?: EpisodeWriter | undefined;
}

/** The flags that say how long a measurement is. */
export const LENGTH_FLAGS = ["chunks", "seconds", "bursts", "rounds", "sessions", "calls", "files"] as const;

interface Suite {
  readonly about: string;
  readonly flag: (typeof LENGTH_FLAGS)[number];
  readonly usual: number;
  readonly max: number;
  /** Robots at once, `most` being the greatest number, or the one that was asked for; undefined where it is not for this suite. */
  readonly robots:
    | { readonly max: number; readonly usual: (asked: number | undefined) => readonly number[] }
    | undefined;
  /** On which the sample's model is measured; undefined where no model takes part. */
  readonly devices: readonly string[] | undefined;
  /** It runs on any device that serves. */
  readonly anyDevice?: true;
  /** It looks into the process of the service, so that none of another owner can be measured. */
  readonly ownService: boolean;
  run(plan: SuitePlan): Promise<Report | Problem>;
}

const oneAndEight = (asked: number | undefined): readonly number[] => (asked === undefined ? [1, 8] : [asked]);

export const SUITE_NAMES = [
  "chunk",
  "episode",
  "http",
  "scale",
  "burst",
  "start",
  "memory",
  "interference",
  "llm",
  "runs",
  "gpu",
] as const;
export type SuiteName = (typeof SUITE_NAMES)[number];

export const SUITES: Readonly<Record<SuiteName, Suite>> = {
  chunk: {
    about: "where the time of a chunk goes, station by station",
    flag: "chunks",
    usual: 500,
    max: 10_000_000,
    ownService: false,
    robots: { max: 64, usual: oneAndEight },
    devices: ["echo", "cpu"],
    run: (plan) => reported(runChunkSuite({ ...plan, chunks: plan.length }), chunkReport),
  },
  episode: {
    about: "whether a robot's control loop ever lacks a row",
    // The lateness of every tick is kept until the end: 7 million numbers with 64 robots.
    flag: "seconds",
    usual: 10,
    max: 3_600,
    ownService: false,
    robots: { max: 64, usual: oneAndEight },
    devices: ["echo", "cpu"],
    run: (plan) => reported(runEpisodeSuite({ ...plan, seconds: plan.length }), episodeReport),
  },
  http: {
    about: "latency and throughput over HTTP, closed loops and open loops at fixed rates",
    flag: "seconds",
    usual: 10,
    max: 3_600,
    ownService: false,
    robots: { max: 256, usual: oneAndEight },
    devices: ["echo"],
    run: (plan) => {
      const rates = plan.rate === undefined ? RATES : [plan.rate];
      return reported(runHttpSuite({ ...plan, seconds: plan.length, rates }), httpReport);
    },
  },
  scale: {
    about: "what a chunk costs as robots are added",
    flag: "seconds",
    usual: 5,
    max: 3_600,
    ownService: true,
    robots: { max: 256, usual: (asked) => doublings(asked ?? 64) },
    devices: ["echo"],
    run: (plan) => reported(runScaleSuite({ ...plan, seconds: plan.length }), scaleReport),
  },
  burst: {
    about: "robots that all ask at once after silence",
    flag: "bursts",
    usual: 20,
    max: 10_000,
    ownService: false,
    robots: { max: 256, usual: (asked) => (asked === undefined ? [8, 64] : [asked]) },
    devices: ["echo"],
    run: (plan) => reported(runBurstSuite({ ...plan, bursts: plan.length }), burstReport),
  },
  start: {
    about: "cold and warm start until ready, the first request against the hundredth",
    flag: "rounds",
    usual: 5,
    max: 100,
    ownService: true,
    robots: undefined,
    devices: ["cpu"],
    run: (plan) => reported(runStartSuite({ ...plan, rounds: plan.length }), startReport),
  },
  memory: {
    about: "what an idle session keeps in memory",
    flag: "sessions",
    usual: 500,
    max: 1_000,
    ownService: true,
    robots: undefined,
    devices: ["echo"],
    run: (plan) => reported(runMemorySuite({ ...plan, sessions: plan.length }), memoryReport),
  },
  interference: {
    about: "a robot beside uploads, streams of language models, people who sign in, paid requests, pages",
    flag: "rounds",
    usual: 4,
    max: 100,
    ownService: true,
    robots: undefined,
    devices: ["echo"],
    run: (plan) => reported(runInterferenceSuite({ ...plan, rounds: plan.length }), interferenceReport),
  },
  llm: {
    about: "what the service adds to a call of a language model",
    flag: "calls",
    usual: 300,
    max: 100_000,
    ownService: true,
    robots: undefined,
    devices: undefined,
    run: (plan) => reported(runLlmSuite({ ...plan, calls: plan.length }), llmReport),
  },
  runs: {
    about: "files of a robot's run into run storage: speed and cost",
    flag: "files",
    usual: 30,
    max: 1_900,
    ownService: true,
    robots: undefined,
    devices: undefined,
    run: (plan) => reported(runRunsSuite({ ...plan, files: plan.length }), runsReport),
  },
  gpu: {
    about: "a device without a service: stations, batches, sessions, power, roofline",
    flag: "chunks",
    usual: 50,
    max: 100_000,
    ownService: true,
    robots: undefined,
    devices: ["auto"],
    anyDevice: true,
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
