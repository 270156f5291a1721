/** The camera frames that measured robots send. */
import { present } from "../../std/assert.ts";
import { Problem } from "../../std/problem.ts";
import { sampleFrames } from "./drawing.ts";

/** Observations that robots send in turn: the frames of each in the model's camera order. */
export type Scenes = readonly (readonly Uint8Array[])[];

/** `count` different scenes, the same every time. `size`: of their frames in pixels, where not that of the robot's cameras. */
export async function drawnScenes(count = 4, size?: Parameters<typeof sampleFrames>[1]): Promise<Scenes | Problem> {
  const scenes: Uint8Array[][] = [];
  for (let seed = 0; seed < count; seed += 1) {
    const frames = await sampleFrames(seed, size);
    if (frames instanceof Problem) return frames;
    scenes.push(frames);
  }
  return scenes;
}

/** The frames of a scene, camera after camera. Cameras beyond its views see these again. */
export function framesOf(scene: Scenes[number], cameras: number, perCamera: number): Uint8Array[] {
  return Array.from({ length: cameras * perCamera }, (_, at) =>
    present(scene[Math.floor(at / perCamera) % scene.length], "a view of the scene"),
  );
}
