/**
 * `tendon bench SUITE`: measures this program as robots meet it. Each suite answers one question (bench/suites.ts), as a table and as
 * JSON. Measured services run in fresh processes; the load comes from this one.
 */
import { rename } from "node:fs/promises";
import { EpisodeWriter } from "../client/episode-log/write.ts";
import type { Report } from "../measure/report.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { DEVICE_FLAGS, deviceOf, devicePlan } from "./bench/device-flags.ts";
import { LENGTH_FLAGS, SUITE_NAMES, SUITES, type SuiteName, type SuitePlan } from "./bench/suites.ts";
import { type Command, type Given, usageProblem } from "./frame/command.ts";
import { print, printJson, printNote } from "./frame/print.ts";
import { wholeNumber } from "./frame/values.ts";

const NAMES = SUITE_NAMES.join(", ");
const RATE_MAX = 10_000;

/** `Length of one measurement: http 1 to 3600 (default 10), …`. */
function lengthAbout(flag: (typeof LENGTH_FLAGS)[number], what: string): string {
  const users = SUITE_NAMES.filter((name) => SUITES[name].flag === flag);
  const ranges = users.map((name) => `${name} 1 to ${SUITES[name].max} (default ${SUITES[name].usual})`);
  return `${what}: ${ranges.join(", ")}.`;
}

export const bench: Command = {
  name: "bench",
  summary: `Measure the latency that robots meet on this machine. SUITE is one of: ${NAMES}.`,
  details: SUITE_NAMES.map((name) => `${name.padEnd(12)} ${SUITES[name].about}`),
  positionals: "SUITE",
  flags: {
    url: {
      value: "URL",
      about:
        "Measure this running service, with the key in use (its account pays), in place of fresh ones; not for gpu.",
    },
    robots: {
      value: "N",
      about: "Robots at once (default: 1, then 8). chunk, episode: 1 to 64; http: 1 to 256.",
    },
    chunks: { value: "N", about: lengthAbout("chunks", "Chunks in one measurement, over all robots") },
    seconds: { value: "N", about: lengthAbout("seconds", "Length of one measurement") },
    rate: {
      value: "N",
      about: `http: requests a second of the open loop, 1 to ${RATE_MAX} (default: several, one after the other).`,
    },
    device: {
      value: "NAME",
      about:
        "Only this device: echo or cpu (default: chunk, episode both; http echo); not with --url. " +
        "For gpu: auto (default), cpu, cuda:N, tensorrt:N or webgpu:N.",
    },
    frames: {
      value: "DIR",
      about: "JPEG frames to send instead of drawn ones: its files by name, three per observation.",
    },
    models: {
      value: "DIR",
      about:
        "Bundles to measure (default: those that ship with the executable); for gpu also the folder of one bundle.",
    },
    ...DEVICE_FLAGS,
    record: {
      value: "DIR",
      about:
        "episode: also write the first robot's episode as a run, to a new or empty folder, on disk beside the measurement " +
        "(then by default of 1 robot, cpu).",
    },
    json: { value: "FILE", about: "Write all figures as JSON; '-' for standard output instead of the table." },
  },
  async run(given) {
    const plan = planOf(given);
    if (plan instanceof Problem) return plan;
    const recording = plan.record === undefined ? undefined : await EpisodeWriter.claim(plan.record);
    if (recording instanceof Problem) return recording;
    const report = await SUITES[plan.suite].run({ ...plan, recording });
    const lost = await recording?.end();
    if (report instanceof Problem) return report;
    const path = given.text("json");
    if (path === "-") await printJson(report.json);
    else {
      const failed = path === undefined ? undefined : await writeJson(path, report);
      if (failed !== undefined) return failed;
      await print(report.text);
    }
    return lost ?? EXIT.done;
  },
};

interface Plan extends SuitePlan {
  readonly suite: SuiteName;
  readonly record: string | undefined;
}

function planOf(given: Given): Plan | Problem {
  const [name, ...more] = given.positionals;
  if (name === undefined || more.length > 0) return usageProblem(bench, `expected one suite: ${NAMES}`);
  if (!isSuite(name)) return usageProblem(bench, `unknown suite '${name}', there is: ${NAMES}`);
  const suite = SUITES[name];
  const length = lengthOf(given, name);
  if (length instanceof Problem) return length;
  const [url, record] = [given.text("url"), given.text("record")];
  if (url !== undefined && suite.robotsMax === undefined)
    return usageProblem(bench, `${name} measures without a service, no --url`);
  const device = deviceOf(bench, given, suite.robotsMax === undefined);
  if (device instanceof Problem) return device;
  if (url !== undefined && device !== undefined)
    return usageProblem(bench, "--device cannot be set for a running service");
  const placed = devicePlan(bench, given, name);
  if (placed instanceof Problem) return placed;
  if (record !== undefined && name !== "episode") return usageProblem(bench, `--record is not for ${name}`);
  if (given.text("rate") !== undefined && name !== "http") return usageProblem(bench, `--rate is not for ${name}`);
  const rate = wholeNumber(bench, given, "rate", [1, RATE_MAX]);
  if (rate instanceof Problem) return rate;
  // A run is one episode, so there is one measurement: the first number and the last device of the usual ones.
  const robots = robotsOf(given, name, record === undefined ? undefined : 1);
  if (robots instanceof Problem) return robots;
  const devicesUsual = record === undefined ? suite.devices : ["cpu"];
  return {
    ...{ suite: name, length, rate, robots, record, url, ...placed },
    devices: device === undefined ? devicesUsual : [device],
    frames: given.text("frames"),
    models: given.text("models"),
    progress: printNote,
  };
}

function isSuite(name: string): name is SuiteName {
  return Object.hasOwn(SUITES, name);
}

function robotsOf(given: Given, name: SuiteName, usual: number | undefined): readonly number[] | Problem {
  const { robotsMax } = SUITES[name];
  if (robotsMax === undefined) {
    return given.text("robots") === undefined ? [1] : usageProblem(bench, `--robots is not for ${name}`);
  }
  const robots = wholeNumber(bench, given, "robots", [1, robotsMax]) ?? usual;
  if (robots instanceof Problem) return robots;
  return robots === undefined ? [1, 8] : [robots];
}

function lengthOf(given: Given, name: SuiteName): number | Problem {
  const { flag, usual, max } = SUITES[name];
  const foreign = LENGTH_FLAGS.find((other) => other !== flag && given.text(other) !== undefined);
  if (foreign !== undefined) return usageProblem(bench, `--${foreign} is not for ${name}, its flag is --${flag}`);
  return wholeNumber(bench, given, flag, [1, max]) ?? usual;
}

/** Renamed when complete: an interrupted run must not leave half a file. */
async function writeJson(path: string, { json }: Report): Promise<Problem | undefined> {
  try {
    await Bun.write(`${path}.partial`, `${JSON.stringify(json, null, 2)}\n`);
    await rename(`${path}.partial`, path);
    return undefined;
  } catch (error) {
    return new Problem(`cannot write '${path}': ${(error as Error).message}`);
  }
}
