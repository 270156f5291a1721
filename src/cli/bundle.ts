/** `tendon bundle build|verify|show`. `verify --device` also computes the parity vectors there, as a start does. */
import { resolve } from "node:path";
import { buildBundle } from "../bundle/build.ts";
import { describe, show } from "../bundle/describe.ts";
import type { Manifest } from "../bundle/manifest.ts";
import { readBundle } from "../bundle/read.ts";
import type { Progress } from "../bundle/weight-file.ts";
import { PRECISIONS } from "../bundle/weights.ts";
import { Problem } from "../error/problem.ts";
import { shown } from "./bundle-build/shown.ts";
import { type Computed, computeParity } from "./bundle-verify/parity.ts";
import { type Command, type Given, usageProblem } from "./frame/command.ts";
import { answer } from "./frame/print.ts";

export const bundle: Command = {
  name: "bundle",
  summary: "Builds, verifies and shows model bundles: build MODEL_DIR --out DIR, verify DIR, show DIR.",
  positionals: "build|verify|show DIR",
  flags: {
    out: { value: "DIR", about: "Where `build` puts the bundle; a bundle that stands there is replaced." },
    weights: {
      value: PRECISIONS.join("|"),
      about:
        "`build`: how the large matrices are kept. int8 is faster on a CPU with VNNI, bf16 half as large, in a file of its own; each has its own parity tolerance (default f32).",
    },
    device: {
      value: "DEVICE",
      about:
        "`verify`: also compute the bundle's parity vectors on this device: auto, cpu, cuda:0, tensorrt:0 or webgpu:0.",
    },
    json: { about: "Print JSON: the manifest (show), or id, export id, weights, folder and bytes (build, verify)." },
  },
  async run(given) {
    const [action, folder, ...rest] = given.positionals;
    if (action !== "build" && action !== "verify" && action !== "show") {
      const found = action === undefined ? "nothing" : `'${action}'`;
      return usageProblem(bundle, `expected build, verify or show, found ${found}`);
    }
    if (folder === undefined) return usageProblem(bundle, `'bundle ${action}' needs a folder`);
    if (rest.length > 0) return usageProblem(bundle, `unexpected argument '${rest[0]}'`);
    const [dir, out, device] = [resolve(folder), given.text("out"), given.text("device")];
    const weights = given.text("weights");
    if (weights !== undefined && action !== "build") return usageProblem(bundle, "--weights belongs to 'bundle build'");
    if (device !== undefined && action !== "verify") return usageProblem(bundle, "--device belongs to 'bundle verify'");
    if (action === "build") {
      if (out === undefined) return usageProblem(bundle, "'bundle build' needs --out DIR");
      const precision = PRECISIONS.find((one) => one === (weights ?? "f32"));
      if (precision === undefined) {
        return usageProblem(bundle, `--weights is '${weights}', expected ${PRECISIONS.join(", ")}`);
      }
      const build = (progress?: Progress) =>
        buildBundle(dir, resolve(out), precision, { ...(progress && { progress }) });
      const built = await (given.on("json") ? build() : shown(build));
      return built instanceof Problem ? built : report(given, "built", built, resolve(out));
    }
    if (out !== undefined) return usageProblem(bundle, "--out belongs to 'bundle build'");
    const read = await readBundle(dir);
    if (read instanceof Problem) return read;
    const { manifest } = read;
    if (action === "verify") {
      const computed = device === undefined ? undefined : await computeParity(read, device);
      return computed instanceof Problem ? computed : report(given, "verified", manifest, dir, computed);
    }
    return answer(given, { ...manifest, description: describe(manifest) }, show(manifest));
  },
};

/** One line, or one JSON object, about a whole and correct bundle; with a device a line for each parity vector. */
async function report(
  given: Given,
  done: "built" | "verified",
  manifest: Manifest,
  dir: string,
  computed?: Computed,
): Promise<number> {
  const { id, export_id, reference, weights = "f32", files, parity } = manifest;
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const kept = weights === "f32" ? "" : `, ${weights} weights`;
  const words = `${done} ${id}${reference ? " (reference bundle, random weights)" : ""}${kept}: ${files.length} files, ${bytes} bytes, ${dir}`;
  const facts = { ok: true, id, export_id, reference, weights, dir, files: files.length, bytes };
  if (computed === undefined) return answer(given, facts, words);
  const { tolerance } = parity;
  return answer(given, { ...facts, ...computed, tolerance }, `${words}\n${computedLines(computed, tolerance)}`);
}

function computedLines({ device, refused, parity }: Computed, tolerance: number): string {
  return [
    `computed on ${device}, at most ${tolerance.toExponential(1)} may differ`,
    ...parity.map((difference, index) => `  parity vector ${index + 1}: ${difference.toExponential(1)}`),
    ...refused.map(({ device, reason }) => `  ${device} refused: ${reason}`),
  ].join("\n");
}
