/**
 * `tendon bench SUITE`: where the time of a chunk goes, at 1 robot and at 8, against the echo device and the bundle on the CPU.
 *
 * Not a load test: robots wait for their chunk before they send the next observation, as robots do.
 */
import { readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { EXIT, Problem } from "../error.ts";
import { systemClock } from "../std/clock.ts";
import { csvText, type Measurement, reportText } from "./bench-report.ts";
import { type Child, startChild } from "./child.ts";
import type { Service } from "./client.ts";
import { type Command, type Given, usageProblem } from "./command.ts";
import { sampleFrames } from "./drawing.ts";
import { measure } from "./load.ts";
import { origin } from "./origin.ts";
import { print, printJson, printNote } from "./print.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE, wholeNumber } from "./sample.ts";
import { signedIn } from "./sign-in.ts";

/** Different observations that the robots take turns with. */
const SCENES = 4;
const CHUNKS_DEFAULT = 500;
const CHUNKS_MAX = 10_000_000;
const ROBOTS_MAX = 64;
/** Chunks of each robot that are not measured: connections, caches and the compiler of the client warm up. */
const WARMUP_CHUNKS = 10;

export const bench: Command = {
  name: "bench",
  summary: "Measure a chunk station by station and end to end. SUITE is: chunk.",
  positionals: "SUITE",
  flags: {
    url: { value: "URL", about: "Measure this running service instead of fresh ones of its own." },
    robots: { value: "N", about: `Robots at once, 1 to ${ROBOTS_MAX} (default: 1, then 8).` },
    chunks: { value: "N", about: `Chunks of one measurement, over all robots (default ${CHUNKS_DEFAULT}).` },
    device: { value: "NAME", about: "Only this device: echo or cpu (default: both); not with --url." },
    frames: {
      value: "DIR",
      about: "JPEG frames to send instead of drawn ones: its files by name, three per observation.",
    },
    models: { value: "DIR", about: "Bundles to measure (default: those that ship with the executable)." },
    json: { value: "FILE", about: "Write all figures as JSON; '-' for standard output instead of the table." },
    csv: { value: "FILE", about: "Write one line per station as CSV." },
  },
  run,
};

interface Plan {
  readonly robots: readonly number[];
  readonly chunks: number;
  readonly devices: readonly string[];
  readonly url?: string | undefined;
  readonly frames?: string | undefined;
  readonly models?: string | undefined;
}

async function run(given: Given): Promise<number | Problem> {
  const plan = planOf(given);
  if (plan instanceof Problem) return plan;
  const measurements = await runChunkSuite(plan);
  if (measurements instanceof Problem) return measurements;
  const from = await origin();
  const report = { suite: "chunk", ...from, measurements };
  const written = await writeFiles(given, JSON.stringify(report, null, 2), csvText(from, measurements));
  if (written instanceof Problem) return written;
  if (given.text("json") === "-") await printJson(report);
  else await print(reportText(from, measurements));
  return EXIT.done;
}

function planOf(given: Given): Plan | Problem {
  if (given.positionals.length !== 1) return usageProblem(bench, "expected one suite: chunk");
  if (given.positionals[0] !== "chunk")
    return usageProblem(bench, `unknown suite '${given.positionals[0]}', there is: chunk`);
  const robots = given.text("robots");
  const robotsCount = robots === undefined ? undefined : wholeNumber(robots, ROBOTS_MAX);
  if (robots !== undefined && !robotsCount)
    return usageProblem(bench, `--robots is '${robots}', expected 1 to ${ROBOTS_MAX}`);
  const chunks = given.text("chunks") ?? String(CHUNKS_DEFAULT);
  const chunksCount = wholeNumber(chunks, CHUNKS_MAX);
  if (!chunksCount) return usageProblem(bench, `--chunks is '${chunks}', expected 1 to ${CHUNKS_MAX}`);
  const [url, device] = [given.text("url"), given.text("device")];
  if (url !== undefined && device !== undefined)
    return usageProblem(bench, "--device cannot be set for a running service");
  if (device !== undefined && device !== "echo" && device !== "cpu") {
    return usageProblem(bench, `--device is '${device}', expected echo or cpu`);
  }
  return {
    robots: robotsCount === undefined ? [1, 8] : [robotsCount],
    chunks: chunksCount,
    devices: device === undefined ? ["echo", "cpu"] : [device],
    url,
    frames: given.text("frames"),
    models: given.text("models"),
  };
}

/** All measurements of the plan, one after the other, each against a fresh process unless the plan names a service. */
export async function runChunkSuite(plan: Plan): Promise<Measurement[] | Problem> {
  const scenes = plan.frames === undefined ? await drawnScenes() : await scenesOf(plan.frames);
  if (scenes instanceof Problem) return scenes;
  const measurements: Measurement[] = [];
  for (const device of plan.url === undefined ? plan.devices : ["as configured"]) {
    for (const robots of plan.robots) {
      await printNote(`measuring: device ${device}, robots ${robots}, chunks ${plan.chunks}`);
      const done = await withService(plan, device, (service) =>
        measure({
          service,
          model: SAMPLE_MODEL,
          robots,
          chunks: plan.chunks,
          warmup: WARMUP_CHUNKS,
          scenes,
          instruction: SAMPLE_INSTRUCTION,
          state: SAMPLE_STATE,
          sessionPrefix: `bench-${systemClock.unixMs()}`,
        }),
      );
      if (done instanceof Problem) return done;
      measurements.push({ model: SAMPLE_MODEL, device, robots, chunks: plan.chunks, ...done });
    }
  }
  return measurements;
}

async function withService<T>(
  plan: Plan,
  device: string,
  work: (service: Service) => Promise<T | Problem>,
): Promise<T | Problem> {
  if (plan.url !== undefined) {
    const service = await signedIn(plan.url);
    return service instanceof Problem ? service : work(service);
  }
  const child: Child | Problem = await startChild({ model: SAMPLE_MODEL, device, modelsDir: plan.models });
  if (child instanceof Problem) return child;
  try {
    const done = await work(child.service);
    return done instanceof Problem ? await child.explain(done) : done;
  } finally {
    await child.stop();
  }
}

async function drawnScenes(): Promise<Uint8Array[][] | Problem> {
  const scenes: Uint8Array[][] = [];
  for (let seed = 0; seed < SCENES; seed++) {
    const frames = await sampleFrames(seed);
    if (frames instanceof Problem) return frames;
    scenes.push(frames);
  }
  return scenes;
}

/** The JPEG files of a folder in the order of their names, three per observation; a last incomplete one is left out. */
async function scenesOf(folder: string): Promise<Uint8Array[][] | Problem> {
  try {
    const names = (await readdir(folder)).filter((name) => /\.jpe?g$/i.test(name)).sort();
    const frames = await Promise.all(names.map((name) => Bun.file(join(folder, name)).bytes()));
    const scenes = Array.from({ length: Math.floor(frames.length / 3) }, (_, at) => frames.slice(at * 3, at * 3 + 3));
    if (scenes.length > 0) return scenes;
    return new Problem(`'${folder}' holds ${frames.length} JPEG files; at least three are needed, one per camera`);
  } catch (error) {
    return new Problem(`cannot read the frames in '${folder}': ${(error as Error).message}`);
  }
}

async function writeFiles(given: Given, json: string, csv: string): Promise<Problem | undefined> {
  const files = [
    { path: given.text("json"), text: `${json}\n` },
    { path: given.text("csv"), text: csv },
  ];
  for (const { path, text } of files) {
    if (path === undefined || path === "-") continue;
    try {
      // Whole or not at all: an interrupted measurement must not leave half a table behind.
      await Bun.write(`${path}.partial`, text);
      await rename(`${path}.partial`, path);
    } catch (error) {
      return new Problem(`cannot write '${path}': ${(error as Error).message}`);
    }
  }
  return undefined;
}
