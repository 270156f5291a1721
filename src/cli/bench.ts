/**
 * `tendon bench SUITE`: measures this program as robots meet it, each suite one question (bench/suites.ts), and writes what it found as a
 * table, CSV, JSON and a page. Services of its own run in fresh processes; the load comes from this one.
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
/** Flags that name a file, and what of the report goes there. */
const FORMS = ["json", "csv", "html"] as const;
const RATE_MAX = 10_000;

/** `Length of one measurement: http 1 to 3600 (default 10), …`. */
function lengthAbout(flag: (typeof LENGTH_FLAGS)[number], what: string): string {
  const users = SUITE_NAMES.filter((name) => SUITES[name].flag === flag);
  const ranges = users.map((name) => `${name} 1 to ${SUITES[name].max} (default ${SUITES[name].usual})`);
  return `${what}: ${ranges.join(", ")}.`;
}

export const bench: Command = {
  name: "bench",
  summary: `Measure robots' latency, cost and memory on this machine. SUITE is one of: ${NAMES}.`,
  details: SUITE_NAMES.map((name) => `${name.padEnd(12)} ${SUITES[name].about}`),
  positionals: "SUITE",
  flags: {
    url: {
      value: "URL",
      about:
        "Measure this running service, with the key in use (its account pays), instead of fresh ones of its own; for " +
        `${SUITE_NAMES.filter((name) => !SUITES[name].ownService).join(", ")}.`,
    },
    robots: {
      value: "N",
      about:
        "Robots at once (default: 1, then 8; burst: 8, then 64). chunk, episode: 1 to 64; http, burst: 1 to 256; " +
        "scale: 1, 2, 4 and so on up to N, at most 256 (default 64).",
    },
    chunks: { value: "N", about: lengthAbout("chunks", "Chunks in one measurement, over all robots") },
    seconds: { value: "N", about: lengthAbout("seconds", "Length of one measurement") },
    bursts: { value: "N", about: lengthAbout("bursts", "Bursts in one measurement") },
    rounds: { value: "N", about: lengthAbout("rounds", "Rounds, each with fresh services") },
    sessions: { value: "N", about: lengthAbout("sessions", "Idle sessions of a batch") },
    calls: { value: "N", about: lengthAbout("calls", "Calls of each kind") },
    files: { value: "N", about: lengthAbout("files", "Files of each size") },
    rate: {
      value: "N",
      about: `http: requests a second of the open loop, 1 to ${RATE_MAX} (default: several, one after the other).`,
    },
    device: {
      value: "NAME",
      about:
        "Only this device: echo or cpu (default: chunk, episode both; start cpu; the others echo); not with --url, " +
        "nor for llm and runs, where no model takes part. For gpu: auto (default), cpu, cuda:N, tensorrt:N or webgpu:N.",
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
    csv: { value: "FILE", about: "Write all figures as CSV, a line per measurement; '-' as for --json." },
    html: { value: "FILE", about: "Write a page with the figures and pictures of them; '-' as for --json." },
  },
  async run(given) {
    const plan = planOf(given);
    if (plan instanceof Problem) return plan;
    const recording = plan.record === undefined ? undefined : await EpisodeWriter.claim(plan.record);
    if (recording instanceof Problem) return recording;
    const report = await SUITES[plan.suite].run({ ...plan, recording });
    const lost = await recording?.end();
    if (report instanceof Problem) return report;
    const written = await writeFiles(given, report);
    if (written instanceof Problem) return written;
    const shown = FORMS.find((form) => given.text(form) === "-") ?? "text";
    if (shown === "json") await printJson(report.json);
    else await print(report[shown]);
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
  if (url !== undefined && suite.ownService)
    return usageProblem(bench, `${name} measures services of its own, no --url`);
  const device = deviceOf(bench, given, suite.anyDevice ?? false);
  if (device instanceof Problem) return device;
  if (url !== undefined && device !== undefined)
    return usageProblem(bench, "--device cannot be set for a running service");
  const placed = devicePlan(bench, given, name);
  if (placed instanceof Problem) return placed;
  if (FORMS.filter((form) => given.text(form) === "-").length > 1) {
    return usageProblem(
      bench,
      "only one of --json, --csv and --html can go to standard output; name a file for another",
    );
  }
  if (record !== undefined && name !== "episode") return usageProblem(bench, `--record is not for ${name}`);
  if (given.text("rate") !== undefined && name !== "http") return usageProblem(bench, `--rate is not for ${name}`);
  const rate = wholeNumber(bench, given, "rate", [1, RATE_MAX]);
  if (rate instanceof Problem) return rate;
  // A run is one episode, so there is one measurement: the first number and the last device of the usual ones.
  const robots = robotsOf(given, name, record === undefined ? undefined : 1);
  if (robots instanceof Problem) return robots;
  if (device !== undefined && suite.devices === undefined) return usageProblem(bench, `--device is not for ${name}`);
  const devicesUsual = record === undefined ? (suite.devices ?? ["echo"]) : ["cpu"];
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
  const { robots } = SUITES[name];
  if (robots === undefined) {
    return given.text("robots") === undefined ? [1] : usageProblem(bench, `--robots is not for ${name}`);
  }
  const asked = wholeNumber(bench, given, "robots", [1, robots.max]);
  return asked instanceof Problem ? asked : robots.usual(asked ?? usual);
}

function lengthOf(given: Given, name: SuiteName): number | Problem {
  const { flag, usual, max } = SUITES[name];
  const foreign = LENGTH_FLAGS.find((other) => other !== flag && given.text(other) !== undefined);
  if (foreign !== undefined) return usageProblem(bench, `--${foreign} is not for ${name}, its flag is --${flag}`);
  return wholeNumber(bench, given, flag, [1, max]) ?? usual;
}

async function writeFiles(given: Given, { json, csv, html }: Report): Promise<Problem | undefined> {
  const texts = { json: `${JSON.stringify(json, null, 2)}\n`, csv, html };
  for (const form of FORMS) {
    const path = given.text(form);
    if (path === undefined || path === "-") continue;
    try {
      // Renamed when complete: an interrupted run must not leave half a table.
      await Bun.write(`${path}.partial`, texts[form]);
      await rename(`${path}.partial`, path);
    } catch (error) {
      return new Problem(`cannot write '${path}': ${(error as Error).message}`);
    }
  }
  return undefined;
}
