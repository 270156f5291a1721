/** `tendon sample DIR`: three drawn camera frames, a robot state and a ready request, so that the README's lines run anywhere. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { requestBody } from "../client/request.ts";
import { sampleFrames } from "../measure/sample/drawing.ts";
import { SAMPLE_INSTRUCTION, SAMPLE_MODEL, SAMPLE_STATE } from "../measure/sample/observation.ts";
import { VIEWS } from "../measure/sample/scene.ts";
import { present } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";
import type { Command } from "./frame/command.ts";
import { answer } from "./frame/print.ts";
import { wholeNumber } from "./frame/values.ts";

export const sample: Command = {
  name: "sample",
  summary: "Draw three camera frames and write them with a robot state and a ready request.",
  positionals: "DIR",
  flags: {
    seed: { value: "N", about: "Draw another scene, 0 to 4294967295 (default 0); the same seed draws the same one." },
    json: { about: "Print the written files as one JSON object." },
  },
  async run(given) {
    const dir = given.word(0);
    const seed = wholeNumber(sample, given, "seed", [0, 0xffffffff]) ?? 0;
    if (seed instanceof Problem) return seed;
    const files = await sampleFiles(seed);
    if (files instanceof Problem) return files;
    try {
      await mkdir(dir, { recursive: true });
      for (const [name, content] of files) await Bun.write(join(dir, name), content);
    } catch (error) {
      return new Problem(
        `cannot write the sample to '${dir}': ${(error as Error).message}; name a folder that you may write to`,
      );
    }
    const paths = [...files.keys()].map((name) => join(dir, name));
    return answer(given, { dir, model: SAMPLE_MODEL, files: paths }, listing(paths, [...files.values()]));
  },
};

/** The files of a sample by name: a JPEG per camera, `state.json` and `request.json`. */
export async function sampleFiles(seed: number): Promise<Map<string, Uint8Array | string> | Problem> {
  const files = new Map<string, Uint8Array | string>();
  const frames = await sampleFrames(seed);
  if (frames instanceof Problem) return frames;
  for (const [index, view] of VIEWS.entries())
    files.set(`${view}.jpg`, present(frames[index], "a frame of every view"));
  files.set("state.json", `${JSON.stringify(SAMPLE_STATE, null, 2)}\n`);
  const request = { model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, frames, state: SAMPLE_STATE };
  files.set("request.json", `${JSON.stringify(requestBody(request))}\n`);
  return files;
}

function listing(paths: readonly string[], contents: readonly (Uint8Array | string)[]): string {
  const lines = paths.map((path, index) => `${path}  ${contents[index]?.length ?? 0} bytes`);
  return `${lines.join("\n")}\nThe frames are drawings; send them with: tendon act, or curl -d @${paths.at(-1)}\n`;
}
