/**
 * Is a chunk of a published policy as fast here as in its publisher's own code? ACT and SmolVLA at their published sizes with random weights,
 * two threads on both sides, the same observation. Processes are fresh and take turns; a figure is the median of five.
 *
 * tendon's time begins with JPEG files, LeRobot's with decoded pictures. The small size times tendon alone, on the checkpoints of the repository.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { ownProgram } from "../src/measure/child.ts";
import { Problem } from "../src/std/problem.ts";
import { output, publishers, VECTORS } from "./import/publishers.ts";
import { type Figure, judged, medianOver, type Proof, type Size } from "./proof.ts";

const POLICIES = [
  { family: "act", name: "ACT", cameras: ["front"] },
  { family: "smolvla", name: "SmolVLA", cameras: ["camera1", "camera2", "camera3"] },
] as const;
type Policy = (typeof POLICIES)[number];

const SCRIPT = join(import.meta.dir, "import/published_size.py");
const ROUNDS = { small: 1, full: 5 } as const;
/** Seconds in which a process times chunks, and the most chunks. */
const TIMED = { small: ["0", "1"], full: ["6", "30"] } as const;
/** Asked for of rows in float32. */
const DIFFERENCE_MAX = 1e-4;

const Timed = Type.Object({ ms: Type.Number() });
const Verified = Type.Object({
  golden: Type.Object({ stages: Type.Array(Type.Object({ difference: Type.Number() })) }),
});

export const publishedSpeed: Proof = {
  name: "import-speed",
  question: "Is a chunk of a published policy as fast as in its publisher's own code?",
  argument: "[act|smolvla]",
  async run(size, only) {
    const policies = POLICIES.filter(({ family }) => only === undefined || family === only);
    if (policies.length === 0) return new Problem(`there is no policy ${only}; name act or smolvla`);
    const environments = size === "small" ? undefined : await publishers();
    if (environments instanceof Problem) return environments;
    const folder = await mkdtemp(join(tmpdir(), "tendon-import-speed-"));
    try {
      const rows: Figure[] = [];
      for (const policy of policies) {
        const python = environments && join(environments, "lerobot/bin/python");
        const measured = await compared(policy, join(folder, policy.family), size, python);
        if (measured instanceof Problem) return measured;
        rows.push(...measured);
      }
      return judged(rows);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function compared({ family, name, cameras }: Policy, folder: string, size: Size, python: string | undefined) {
  const made = python === undefined ? join(VECTORS, family) : folder;
  const said = python === undefined ? "" : await output([python, SCRIPT, "make", family, folder]);
  if (said instanceof Problem) return said;
  const bundle = `${folder}-bundle`;
  const robot = python === undefined ? join(VECTORS, family, "robot.toml") : await robotOf(folder, cameras);
  const from = [join(made, "checkpoint"), "--golden", join(made, "golden"), "--robot", robot];
  const written = await output([
    ...ownProgram(),
    "bundle",
    "import",
    ...from,
    "--id",
    `lab/${family}`,
    "--out",
    bundle,
  ]);
  if (written instanceof Problem) return written;
  const verified = await printed(Verified, [...ownProgram(), "bundle", "verify", bundle, "--json"]);
  if (verified instanceof Problem) return verified;
  const rounds: { ours: number; theirs: number }[] = [];
  for (let round = 0; round < ROUNDS[size]; round += 1) {
    const child = join(import.meta.dir, "import/chunk-child.ts");
    const ours = await printed(Timed, [process.execPath, child, bundle, ...TIMED[size]]);
    if (ours instanceof Problem) return ours;
    const theirs = python ? await printed(Timed, [python, SCRIPT, "time", family, folder, ...TIMED[size]]) : ours;
    if (theirs instanceof Problem) return theirs;
    rounds.push({ ours: ours.ms, theirs: theirs.ms });
  }
  const value = Math.max(...verified.golden.stages.map(({ difference }) => difference));
  const figure = medianOver(rounds, `${name}: `);
  const own = [
    { measure: `${name}: largest difference`, value, unit: "1", limit: DIFFERENCE_MAX },
    figure("chunk, tendon", "ms", ({ ours }) => ours),
  ];
  if (python === undefined) return own;
  return [
    ...own,
    figure("chunk, LeRobot", "ms", ({ theirs }) => theirs),
    figure("tendon / LeRobot", "1", ({ ours, theirs }) => ours / theirs, { limit: 1 }),
  ];
}

/** A robot file like those of the small checkpoints, with these cameras. */
async function robotOf(folder: string, cameras: readonly string[]): Promise<string> {
  const lines = (await Bun.file(join(VECTORS, "act/robot.toml")).text()).split("\n");
  const others = lines.filter((line) => !/^cameras|observation\.images/.test(line));
  others.splice(others.indexOf("]"), 1);
  const own = cameras.map((name) => `{ name = "${name}", key = "observation.images.${name}" }`);
  await writeFile(`${folder}.toml`, [`cameras = [${own.join(", ")}]`, ...others].join("\n"));
  return `${folder}.toml`;
}

/** What the last line of a command says as JSON. */
async function printed<Schema extends typeof Timed | typeof Verified>(schema: Schema, words: readonly string[]) {
  const said = await output(words);
  if (said instanceof Problem) return said;
  return Value.Decode(schema, JSON.parse(said.trim().split("\n").at(-1) ?? ""));
}
