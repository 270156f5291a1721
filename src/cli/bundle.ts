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
    const [action, folder, ...rest] = given.positionals;
    if (action !== "build" && action !== "verify" && action !== "show") {
      const found = action === undefined ? "nothing" : `'${action}'`;
      return usageProblem(bundle, `expected build, verify or show, found ${found}`);
    }
    if (folder === undefined) return usageProblem(bundle, `'bundle ${action}' needs a folder`);
    if (rest.length > 0) return usageProblem(bundle, `unexpected argument '${rest[0]}'`);
    const [dir, out] = [resolve(folder), given.text("out")];
    if (action === "build") {
      if (out === undefined) return usageProblem(bundle, "'bundle build' needs --out DIR");
      const built = await buildBundle(dir, resolve(out));
      return built instanceof Problem ? built : report(given, "built", built, resolve(out));
    }
    if (out !== undefined) return usageProblem(bundle, "--out belongs to 'bundle build'");
    const read = await readBundle(dir);
    if (read instanceof Problem) return read;
    const { manifest } = read;
    if (action === "verify") return report(given, "verified", manifest, dir);
    return answer(given, { ...manifest, description: describe(manifest) }, show(manifest));
  },
};

/** One line, or one JSON object, about a whole and correct bundle. */
async function report(given: Given, done: "built" | "verified", manifest: Manifest, dir: string): Promise<number> {
  const { id, export_id, reference, files } = manifest;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const words = `${done} ${id}${reference ? " (reference bundle, random weights)" : ""}: ${files.length} files, ${bytes} bytes, ${dir}`;
  return answer(given, { ok: true, id, export_id, reference, dir, files: files.length, bytes }, words);
}
