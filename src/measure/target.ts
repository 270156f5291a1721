/** What the suites of `tendon bench` measure: a service of their own or one that runs already, and what they show it. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { printNote } from "../cli/frame/print.ts";
import { SAMPLE_MODEL } from "../cli/sample.ts";
import type { Service } from "../client/http.ts";
import { signedIn } from "../client/sign-in.ts";
import { Problem } from "../error/problem.ts";
import { startChild } from "./child.ts";
import { sampleFrames } from "./sample/drawing.ts";

/** Different observations that the robots take turns with. */
const SCENES = 4;

/** The part of a plan that all suites have. */
export interface BenchTarget {
  /** Each number of robots is a measurement of its own, on each device. */
  readonly robots: readonly number[];
  readonly devices: readonly string[];
  readonly url?: string | undefined;
  readonly frames?: string | undefined;
  readonly models?: string | undefined;
}

/** The devices to measure; a service that runs already has its own. */
function devicesOf({ url, devices }: BenchTarget): readonly string[] {
  return url === undefined ? devices : ["as configured"];
}

/** A measurement of each number of robots on each device, one after the other; `told` says on standard error which it is. */
export async function measureEach<T extends object>(
  target: BenchTarget,
  told: string,
  work: (service: Service, robots: number) => Promise<T | Problem>,
): Promise<(T & { model: string; device: string; robots: number })[] | Problem> {
  const measurements: (T & { model: string; device: string; robots: number })[] = [];
  for (const device of devicesOf(target)) {
    for (const robots of target.robots) {
      await printNote(`measuring: device ${device}, robots ${robots}, ${told}`);
      const done = await withService(target, device, (service) => work(service, robots));
      if (done instanceof Problem) return done;
      measurements.push({ ...done, model: SAMPLE_MODEL, device, robots });
    }
  }
  return measurements;
}

/** Against a fresh process, unless the target names a service. */
async function withService<T>(
  target: BenchTarget,
  device: string,
  work: (service: Service) => Promise<T | Problem>,
): Promise<T | Problem> {
  if (target.url !== undefined) {
    const service = await signedIn(target.url);
    return service instanceof Problem ? service : work(service);
  }
  const child = await startChild({ model: SAMPLE_MODEL, device, modelsDir: target.models });
  if (child instanceof Problem) return child;
  try {
    const done = await work(child.service);
    return done instanceof Problem ? await child.explain(done) : done;
  } finally {
    await child.stop();
  }
}

/** Observations to take turns with: the frames of each in the model's camera order. */
export type Scenes = readonly (readonly Uint8Array[])[];

export async function scenesFor({ frames }: BenchTarget): Promise<Scenes | Problem> {
  return frames === undefined ? await drawnScenes() : await scenesOf(frames);
}

async function drawnScenes(): Promise<Scenes | Problem> {
  const scenes: Uint8Array[][] = [];
  for (let seed = 0; seed < SCENES; seed++) {
    const frames = await sampleFrames(seed);
    if (frames instanceof Problem) return frames;
    scenes.push(frames);
  }
  return scenes;
}

/** The JPEG files of a folder in the order of their names, three per observation; a last incomplete one is left out. */
async function scenesOf(folder: string): Promise<Scenes | Problem> {
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
