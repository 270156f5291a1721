/**
 * `tendon bench SUITE`: `chunk`, where the time of a chunk goes; `episode`, whether a robot's control loop ever lacks a row.
 * At 1 robot and at 8, against the echo device and the bundle on the CPU. Not a load test: robots send no faster than they play.
 */
import { rename } from "node:fs/promises";
import { EpisodeWriter } from "../client/episode-log/write.ts";
import { EXIT, Problem } from "../error/problem.ts";
import { chunkReport } from "../measure/chunk/report.ts";
import { runChunkSuite } from "../measure/chunk/suite.ts";
import { episodeReport } from "../measure/episode/report.ts";
import { runEpisodeSuite } from "../measure/episode/suite.ts";
import { origin } from "../measure/origin.ts";
import type { Report } from "../measure/report.ts";
import type { BenchTarget } from "../measure/target.ts";
import { type Command, type Given, usageProblem } from "./frame/command.ts";
import { print, printJson, printNote } from "./frame/print.ts";
import { wholeNumber } from "./frame/values.ts";

const ROBOTS_MAX = 64;

/** The suites, each with the flag that says how long a measurement is. */
const SUITES = {
  chunk: { flag: "chunks", usual: 500, max: 10_000_000, run: chunkSuite },
  // The lateness of every tick is kept until the end: 7 million numbers with 64 robots.
  episode: { flag: "seconds", usual: 10, max: 3_600, run: episodeSuite },
} as const;
type SuiteName = keyof typeof SUITES;
const NAMES = Object.keys(SUITES).join(" or ");

export const bench: Command = {
  name: "bench",
  summary: `Measure a chunk station by station, or robots' control loops. SUITE is: ${NAMES}.`,
  positionals: "SUITE",
  flags: {
    url: {
      value: "URL",
      about: "Measure this running service, with the key in use (its account pays), instead of fresh ones of its own.",
    },
    robots: { value: "N", about: `Robots at once, 1 to ${ROBOTS_MAX} (default: 1, then 8).` },
    chunks: {
      value: "N",
      about: `chunk: how many in one measurement, over all robots, 1 to ${SUITES.chunk.max} (default ${SUITES.chunk.usual}).`,
    },
    seconds: {
      value: "N",
      about: `episode: length of one measurement, 1 to ${SUITES.episode.max} (default ${SUITES.episode.usual}).`,
    },
    device: { value: "NAME", about: "Only this device: echo or cpu (default: both); not with --url." },
    frames: {
      value: "DIR",
      about: "JPEG frames to send instead of drawn ones: its files by name, three per observation.",
    },
    models: { value: "DIR", about: "Bundles to measure (default: those that ship with the executable)." },
    record: {
      value: "DIR",
      about:
        "episode: also write the first robot's episode as a run, to a new or empty folder, on disk beside the measurement " +
        "(then by default of 1 robot, cpu).",
    },
    json: { value: "FILE", about: "Write all figures as JSON; '-' for standard output instead of the table." },
    csv: { value: "FILE", about: "Write all figures as CSV, a line per station or loop; '-' as for --json." },
  },
  async run(given) {
    const plan = planOf(given);
    if (plan instanceof Problem) return plan;
    const recording = plan.record === undefined ? undefined : await EpisodeWriter.claim(plan.record);
    if (recording instanceof Problem) return recording;
    const report = await SUITES[plan.suite].run({ ...plan, recording });
    const lost = await recording?.end();
    if (report instanceof Problem) return report;
    const written = await writeFiles(given, JSON.stringify(report.json, null, 2), report.csv);
    if (written instanceof Problem) return written;
    if (given.text("json") === "-") await printJson(report.json);
    else await print(given.text("csv") === "-" ? report.csv : report.text);
    return lost ?? EXIT.done;
  },
};

interface Plan extends BenchTarget {
  readonly suite: SuiteName;
  /** Chunks or seconds. */
  readonly length: number;
  readonly record: string | undefined;
  readonly recording?: EpisodeWriter | undefined;
}

async function chunkSuite(plan: Plan): Promise<Report | Problem> {
  const measurements = await runChunkSuite({ ...plan, chunks: plan.length });
  return measurements instanceof Problem ? measurements : chunkReport(await origin(), measurements);
}

async function episodeSuite(plan: Plan): Promise<Report | Problem> {
  const measurements = await runEpisodeSuite({ ...plan, seconds: plan.length });
  return measurements instanceof Problem ? measurements : episodeReport(await origin(), measurements);
}

function planOf(given: Given): Plan | Problem {
  const [name, ...more] = given.positionals;
  if (name === undefined || more.length > 0) return usageProblem(bench, `expected one suite: ${NAMES}`);
  if (!isSuite(name)) return usageProblem(bench, `unknown suite '${name}', there is: ${NAMES}`);
  const length = lengthOf(given, name);
  if (length instanceof Problem) return length;
  const robots = wholeNumber(bench, given, "robots", [1, ROBOTS_MAX]);
  if (robots instanceof Problem) return robots;
  const [url, device] = [given.text("url"), given.text("device")];
  if (url !== undefined && device !== undefined)
    return usageProblem(bench, "--device cannot be set for a running service");
  if (given.text("json") === "-" && given.text("csv") === "-")
    return usageProblem(bench, "--json and --csv cannot both go to standard output; name a file for one");
  if (device !== undefined && device !== "echo" && device !== "cpu") {
    return usageProblem(bench, `--device is '${device}', expected echo or cpu`);
  }
  const record = given.text("record");
  if (record !== undefined && name !== "episode") return usageProblem(bench, `--record is not for ${name}`);
  // A run is one episode, so there is one measurement: the first number and the last device of the usual ones.
  const [robotsUsual, devicesUsual] =
    record === undefined
      ? [
          [1, 8],
          ["echo", "cpu"],
        ]
      : [[1], ["cpu"]];
  return {
    suite: name,
    length,
    robots: robots === undefined ? robotsUsual : [robots],
    devices: device === undefined ? devicesUsual : [device],
    record,
    url,
    frames: given.text("frames"),
    models: given.text("models"),
    progress: printNote,
  };
}

function isSuite(name: string): name is SuiteName {
  return Object.hasOwn(SUITES, name);
}

function lengthOf(given: Given, suite: SuiteName): number | Problem {
  const { flag, usual, max } = SUITES[suite];
  const foreign = Object.values(SUITES).find((other) => other.flag !== flag && given.text(other.flag) !== undefined);
  if (foreign !== undefined) return usageProblem(bench, `--${foreign.flag} is not for ${suite}, its flag is --${flag}`);
  return wholeNumber(bench, given, flag, [1, max]) ?? usual;
}

async function writeFiles(given: Given, json: string, csv: string): Promise<Problem | undefined> {
  const files = [
    { path: given.text("json"), text: `${json}\n` },
    { path: given.text("csv"), text: csv },
  ];
  for (const { path, text } of files) {
    if (path === undefined || path === "-") continue;
    try {
      // Renamed when complete: an interrupted run must not leave half a table.
      await Bun.write(`${path}.partial`, text);
      await rename(`${path}.partial`, path);
    } catch (error) {
      return new Problem(`cannot write '${path}': ${(error as Error).message}`);
    }
  }
  return undefined;
}
