/** The camera frames that measured robots send: drawn ones, or JPEG files of a folder. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Problem } from "../../std/problem.ts";
import { sampleFrames } from "./drawing.ts";

/** Observations that robots send in turn: the frames of each in the model's camera order. */
export type Scenes = readonly (readonly Uint8Array[])[];

/** `count` different scenes, the same every time. */
export async function drawnScenes(count = 4): Promise<Scenes | Problem> {
  const scenes: Uint8Array[][] = [];
  for (let seed = 0; seed < count; seed += 1) {
    const frames = await sampleFrames(seed);
    if (frames instanceof Problem) return frames;
    scenes.push(frames);
  }
  return scenes;
}

/** The JPEG files of a folder in the order of their names, three per observation; a last incomplete one is left out. */
export async function scenesIn(folder: string): Promise<Scenes | Problem> {
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
