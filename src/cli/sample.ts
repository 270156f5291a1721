/**
 * `tendon sample DIR`: drawn camera frames, a robot state and a ready request. By itself for the model of the documents, so that the README's
 * lines run anywhere; with `--model` for any model of a running service.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { requestBody } from "../client/request.ts";
import { signedIn } from "../client/sign-in.ts";
import { sampleFrames } from "../measure/sample/drawing.ts";
import { SAMPLE, SAMPLE_INSTRUCTION, SAMPLE_MODEL, type Sample, sampleOf } from "../measure/sample/observation.ts";
import { framesOf } from "../measure/sample/scenes.ts";
import { present } from "../std/assert.ts";
import { Problem } from "../std/problem.ts";
import { BASE_URL_FLAG, type Command } from "./frame/command.ts";
import { answer } from "./frame/print.ts";

export const sample: Command = {
  name: "sample",
  summary: "Draw camera frames and write them with a robot state and a ready request.",
  positionals: "DIR",
  flags: {
    model: {
      value: "ID",
      about: `For this model of a running service, of any robot (default ${SAMPLE_MODEL}, which needs no service).`,
    },
    "base-url": BASE_URL_FLAG,
    json: { about: "Print the written files as one JSON object." },
  },
  async run(given) {
    const dir = given.word(0);
    const id = given.text("model");
    const wanted = id === undefined ? SAMPLE : await served(id, given.text("base-url"));
    if (wanted instanceof Problem) return wanted;
    const { model, state } = wanted;
    const views = await sampleFrames(0, wanted.frameSize);
    if (views instanceof Problem) return views;
    const frames = framesOf(views, wanted.cameras.length, wanted.frames.first);
    const files: [path: string, content: Uint8Array | string][] = [
      ...fileNames(wanted).map((name, at): [string, Uint8Array] => [name, present(frames[at], "a frame of a camera")]),
      ["state.json", `${JSON.stringify(state, null, 2)}\n`],
      ["request.json", `${JSON.stringify(requestBody({ model, instruction: SAMPLE_INSTRUCTION, frames, state }))}\n`],
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
    return answer(given, { dir, model, files: paths }, [...lines, next].join("\n"));
  },
};

async function served(id: string, url: string | undefined): Promise<Sample | Problem> {
  const service = await signedIn(url);
  return service instanceof Problem ? service : await sampleOf(service, id);
}

/** A file for each frame, camera after camera. A camera's name may be any text, and two names never give one file. */
function fileNames({ cameras, frames: { first } }: Sample): string[] {
  return cameras.flatMap((camera) => {
    const name = encodeURIComponent(camera);
    return first === 1 ? `${name}.jpg` : Array.from({ length: first }, (_, at) => `${name}-${at}.jpg`);
  });
}
