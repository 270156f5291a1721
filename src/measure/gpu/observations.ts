/** The observations of a bundle's own parity episode: frames, state and instruction that its graphs take, for a model of any shape. */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Parity } from "../../bundle/manifest.ts";
import type { Bundle } from "../../bundle/read.ts";
import { present } from "../../std/assert.ts";
import type { Observed } from "../inference.ts";

export async function observationsOf({ manifest, paths }: Bundle): Promise<readonly Observed[]> {
  const file = present(paths.get(manifest.parity.file), "the parity file of a verified bundle");
  const { instruction, seed, observations } = JSON.parse(await readFile(file, "utf8")) as Parity;
  return await Promise.all(
    observations.map(async ({ frames, state }) => {
      const jpegs = await Promise.all(frames.map((name) => readFile(join(dirname(file), name))));
      return { jpegs, state: Float32Array.from(state), instruction, seed };
    }),
  );
}
