/**
 * `tendon bench SUITE`: measures this program as robots meet it. Each suite answers one question (bench/suites.ts), as a table and as
 * JSON. Measured services run in fresh processes; the load comes from this one.
 */
import { rename } from "node:fs/promises";
import type { Report } from "../measure/report.ts";
import { SAMPLE_MODEL } from "../measure/sample/observation.ts";
import { EXIT, Problem } from "../std/problem.ts";
import { SUITE_NAMES, SUITES, type SuiteName, type SuitePlan } from "./bench/suites.ts";
import { type Command, type CommandLine, usageProblem } from "./frame/command.ts";
import { print, printJson, printNote } from "./frame/print.ts";
import { boundIn, gpuKeys, wholeNumber } from "./frame/values.ts";

const NAMES = SUITE_NAMES.join(", ");
/** One robot at a time, then some at once. */
const ROBOTS = [1, 8];
const BATCH = { usual: 8, max: 16 } as const;

/** Suites that take a flag; the others are for all of them. */
const ONLY: Readonly<Record<string, readonly SuiteName[]>> = {
  url: ["chunk", "episode", "http"],
  model: ["chunk", "http"],
  chunks: ["chunk", "gpu"],
  seconds: ["episode", "http"],
  batch: ["gpu"],
  gpu: ["gpu"],
  within: ["gpu"],
};

/** `Length of one measurement: http 1 to 3600 (default 10), …`. */
function lengthAbout(flag: "chunks" | "seconds", what: string): string {
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
    chunks: { value: "N", about: lengthAbout("chunks", "Chunks in one measurement, over all robots") },
    seconds: { value: "N", about: lengthAbout("seconds", "Length of one measurement") },
    device: {
      value: "NAME",
      about:
        "Only this device: echo or cpu (default: chunk, episode both; http echo); not with --url. " +
        "For gpu: auto (default), cpu, cuda:N, tensorrt:N or webgpu:N.",
    },
    models: {
      value: "DIR",
      about:
        "Bundles to measure (default: those that ship with the executable); for gpu also the folder of one bundle.",
    },
    model: {
      value: "ID",
      about: `chunk, http: the robot model to measure, of any robot (default ${SAMPLE_MODEL}); state and frames are made up.`,
    },
    batch: {
      value: "N",
      about: `gpu: the most observations at once, 1 to ${BATCH.max}: 1, 2, 4 and so on (default ${BATCH.usual}).`,
    },
    gpu: { value: "KEYS", about: "gpu: keys of the table [gpu], such as cuda_graph=true,precision=bf16." },
    within: {
      value: "X",
      about:
        "gpu: rows may differ by this, in their units, in place of a bundle's own tolerance; the report says both.",
    },
    json: { value: "FILE", about: "Write all figures as JSON; '-' for standard output instead of the table." },
  },
  async run(given) {
    const plan = planOf(given);
    if (plan instanceof Problem) return plan;
    const report = await SUITES[plan.suite].run(plan);
    if (report instanceof Problem) return report;
    const path = given.text("json");
    if (path === "-") await printJson(report.json);
    else {
      const failed = path === undefined ? undefined : await writeJson(path, report);
      if (failed !== undefined) return failed;
      await print(report.text);
    }
    return EXIT.done;
  },
};

function planOf(given: CommandLine): (SuitePlan & { readonly suite: SuiteName }) | Problem {
  const name = given.word(0);
  if (!isSuite(name)) return usageProblem(bench, `unknown suite '${name}', there is: ${NAMES}`);
  const foreign = Object.keys(ONLY).find((flag) => given.text(flag) !== undefined && !ONLY[flag]?.includes(name));
  if (foreign !== undefined)
    return usageProblem(bench, `--${foreign} is not for ${name}, only for ${ONLY[foreign]?.join(" and ")}`);
  const suite = SUITES[name];
  const device = deviceOf(given, suite.served);
  if (device instanceof Problem) return device;
  const url = given.text("url");
  if (url !== undefined && device !== undefined) {
    return usageProblem(bench, "--device cannot be set for a running service");
  }
  const length = wholeNumber(bench, given, suite.flag, [1, suite.max]) ?? suite.usual;
  if (length instanceof Problem) return length;
  const batchMax = wholeNumber(bench, given, "batch", [1, BATCH.max]) ?? BATCH.usual;
  if (batchMax instanceof Problem) return batchMax;
  const gpu = gpuKeys(given.text("gpu") ?? "");
  if (gpu instanceof Problem) return gpu;
  const within = boundIn(bench, given);
  if (within instanceof Problem) return within;
  return {
    ...{ suite: name, length, url, batchMax, gpu, within, progress: printNote },
    robots: ROBOTS,
    devices: device === undefined ? suite.devices : [device],
    models: given.text("models"),
    model: given.text("model"),
  };
}

function isSuite(name: string): name is SuiteName {
  return Object.hasOwn(SUITES, name);
}

/** A suite without a service runs on each device, one with a service on those that a machine without a GPU has. */
function deviceOf(given: CommandLine, served: boolean): string | undefined | Problem {
  const device = given.text("device");
  const known = served ? /^(echo|cpu)$/ : /^(auto|cpu|(cuda|tensorrt|webgpu):\d{1,2})$/;
  if (device === undefined || known.test(device)) return device;
  const expected = served ? "echo or cpu" : "auto, cpu, cuda:N, tensorrt:N or webgpu:N";
  return usageProblem(bench, `--device is '${device}', expected ${expected}`);
}

/** Renamed when complete: an interrupted command must not leave half a file. */
async function writeJson(path: string, { json }: Report): Promise<Problem | undefined> {
  try {
    await Bun.write(`${path}.partial`, `${JSON.stringify(json, null, 2)}\n`);
    await rename(`${path}.partial`, path);
    return undefined;
  } catch (error) {
    return new Problem(`cannot write '${path}': ${(error as Error).message}`);
  }
}
