/** `tendon bundle build|verify|show`. */
import { resolve } from "node:path";
import { buildBundle } from "../bundle/build.ts";
import { describe, show } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import { readBundle } from "../bundle/read.ts";
import { Problem } from "../error/problem.ts";
import { type Command, type Given, usageProblem } from "./frame/command.ts";
import { answer } from "./frame/print.ts";

export const bundle: Command = {
  name: "bundle",
  summary: "Builds, verifies and shows model bundles: build MODEL_DIR --out DIR, verify DIR, show DIR.",
  positionals: "build|verify|show DIR",
  flags: {
    out: { value: "DIR", about: "Where `build` puts the bundle; a bundle that stands there is replaced." },
    json: { about: "Print JSON: the manifest (show), or id, export id, folder and bytes (build, verify)." },
  },
  async run(given) {
    const [action, dir, ...rest] = given.positionals;
    if (!isAction(action)) {
      return usageProblem(
        bundle,
        `expected build, verify or show, found ${action === undefined ? "nothing" : `'${action}'`}`,
      );
    }
    if (dir === undefined) return usageProblem(bundle, `'bundle ${action}' needs a folder`);
    if (rest.length > 0) return usageProblem(bundle, `unexpected argument '${rest[0]}'`);
    if (action !== "build" && given.text("out") !== undefined)
      return usageProblem(bundle, "--out belongs to 'bundle build'");
    return await ACTIONS[action](given, resolve(dir));
  },
};

const ACTIONS = { build, verify, show: showBundle } as const;

function isAction(word: string | undefined): word is keyof typeof ACTIONS {
  return word !== undefined && Object.hasOwn(ACTIONS, word);
}

async function build(given: Given, modelDir: string): Promise<number | Problem> {
  const out = given.text("out");
  if (out === undefined) return usageProblem(bundle, "'bundle build' needs --out DIR");
  const manifest = await buildBundle(modelDir, resolve(out));
  if (manifest instanceof Problem) return manifest;
  return report(given, "built", manifest, resolve(out));
}

async function verify(given: Given, dir: string): Promise<number | Problem> {
  const read = await readBundle(dir);
  if (read instanceof Problem) return read;
  return report(given, "verified", read.manifest, dir);
}

async function showBundle(given: Given, dir: string): Promise<number | Problem> {
  const read = await readBundle(dir);
  if (read instanceof Problem) return read;
  const { manifest } = read;
  return answer(given, { ...manifest, description: describe(manifest) }, show(manifest));
}

/** One line, or one JSON object, about a whole and correct bundle. */
async function report(given: Given, done: "built" | "verified", manifest: Manifest, dir: string): Promise<number> {
  const { id, export_id, reference, files } = manifest;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const words = `${done} ${id}${reference ? " (reference bundle, random weights)" : ""}: ${files.length} files, ${bytes} bytes, ${dir}`;
  return answer(given, { ok: true, id, export_id, reference, dir, files: files.length, bytes }, words);
}
