/** `tendon bundle show DIR`: what a bundle is. */
import { resolve } from "node:path";
import { describe, show } from "../../bundle/describe.ts";
import { readBundle } from "../../bundle/read.ts";
import { Problem } from "../../std/problem.ts";
import type { Command } from "../frame/command.ts";
import { answer } from "../frame/print.ts";

export const bundleShow: Command = {
  name: "bundle show",
  summary: "Show what a bundle is: its cameras, state, rows, limits, licence and files.",
  positionals: "DIR",
  flags: { json: { about: "Print the manifest as JSON." } },
  async run(given) {
    const dir = resolve(given.word(0));
    const read = await readBundle(dir);
    if (read instanceof Problem) return read;
    const { manifest } = read;
    return answer(given, { ...manifest, description: describe(manifest) }, show(manifest));
  },
};
