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

export const sample: Command = {
  name: "sample",
  summary: "Draw three camera frames and write them with a robot state and a ready request.",
  positionals: "DIR",
  flags: { json: { about: "Print the written files as one JSON object." } },
  async run(given) {
    const dir = given.word(0);
    const frames = await sampleFrames(0);
    if (frames instanceof Problem) return frames;
    const request = { model: SAMPLE_MODEL, instruction: SAMPLE_INSTRUCTION, frames, state: SAMPLE_STATE };
    const files: [path: string, content: Uint8Array | string][] = [
      ...VIEWS.map((view, index): [string, Uint8Array] => [`${view}.jpg`, present(frames[index], "a frame of a view")]),
      ["state.json", `${JSON.stringify(SAMPLE_STATE, null, 2)}\n`],
      ["request.json", `${JSON.stringify(requestBody(request))}\n`],
    ];
    try {
      await mkdir(dir, { recursive: true });
      for (const [name, content] of files) await Bun.write(join(dir, name), content);
    } catch (error) {
      return new Problem(
        `cannot write the sample to '${dir}': ${(error as Error).message}; name a folder that you may write to`,
      );
    }
    const paths = files.map(([name]) => join(dir, name));
    const lines = files.map(([name, content]) => `${join(dir, name)}  ${content.length} bytes`);
    const next = `The frames are drawings; send them with: tendon act, or curl -d @${paths.at(-1)}`;
    return answer(given, { dir, model: SAMPLE_MODEL, files: paths }, [...lines, next].join("\n"));
  },
};
