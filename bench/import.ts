/**
 * Do bundles of published checkpoints compute what the publishers' own code does?
 *
 * The full size installs LeRobot and openpi from PyPI and has them make small checkpoints in their layouts, with golden values, for five
 * seeds. It imports and verifies these by the commands that a user has. The small size takes the checkpoints of the repository.
 *
 * A robot without a camera has a bundle without it, so a checkpoint has a bundle for each set of cameras that its cases have.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { TensorFile } from "../src/bundle/import/safetensors.ts";
import { readBundle } from "../src/bundle/read.ts";
import { childEnvironment } from "../src/config/environment.ts";
import { ownProgram } from "../src/measure/child.ts";
import { STAGES, type Stage } from "../src/measure/golden/stages.ts";
import { systemClock } from "../src/std/clock.ts";
import { Problem } from "../src/std/problem.ts";
import { table } from "../src/std/text-table.ts";
import { folderMib, output, publishers, VECTORS } from "./import/publishers.ts";
import { type Figure, type Proof, withinLimits } from "./proof.ts";

/** Each checkpoint's folder: what it is, and the folder of its robot file. */
const LAYOUTS = [
  { folder: "pi05-lerobot", layout: "pi0.5, LeRobot", robot: "pi05-lerobot" },
  { folder: "pi05-openpi", layout: "pi0.5, openpi", robot: "pi05-openpi" },
  { folder: "act", layout: "ACT, LeRobot", robot: "act" },
  { folder: "act-other", layout: "ACT, other choices", robot: "act" },
  { folder: "smolvla", layout: "SmolVLA, LeRobot", robot: "smolvla" },
] as const;
const SEEDS = 5;
/** Asked for in float32, at every stage but tokens, which are equal or not. */
const DIFFERENCE_MAX = 1e-4;

const Golden = Type.Object({
  cases: Type.Array(Type.Object({ frames: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()])) })),
});
const Verified = Type.Object({
  golden: Type.Object({
    cases: Type.Integer(),
    stages: Type.Array(
      Type.Object({
        stage: Type.Union(STAGES.map((stage) => Type.Literal(stage))),
        difference: Type.Union([Type.Number(), Type.Null()]),
      }),
    ),
  }),
});

/** What was found of one layout, over all seeds and cameras. */
interface Compared {
  readonly layout: string;
  /** Cases whose prompts are not longer than the model's: the publishers cut those that are, and tendon refuses them. */
  asked: number;
  cases: number;
  readonly stages: Map<Stage, number>;
}

export const published: Proof = {
  name: "import",
  question: "Do bundles of published checkpoints compute what the publishers' own code does?",
  async run(size) {
    const folder = await mkdtemp(join(tmpdir(), "tendon-import-"));
    try {
      const begun = systemClock.monotonicMs();
      const environments = size === "small" ? undefined : await publishers();
      if (environments instanceof Problem) return environments;
      const installed = systemClock.monotonicMs();
      const made = environments === undefined ? [VECTORS] : await madeAnew(environments, folder);
      if (made instanceof Problem) return made;
      const drawn = systemClock.monotonicMs();
      const all: Compared[] = [];
      for (const one of LAYOUTS.filter(({ folder: name }) => size === "full" || name !== "act-other")) {
        const compared = await comparedAll(
          made.map((seed) => join(seed, one.folder)),
          one,
          folder,
        );
        if (compared instanceof Problem) return compared;
        all.push(compared);
      }
      const rows = all.flatMap(figuresOf);
      if (environments !== undefined) {
        const seconds = (from: number, to: number) => ({ value: (to - from) / 1000, unit: "s" });
        rows.push(
          { measure: "installing what was not there of the publishers' code", ...seconds(begun, installed) },
          { measure: "disk of the publishers' code", value: await folderMib(environments), unit: "MiB" },
          { measure: "making checkpoints and golden values", ...seconds(installed, drawn) },
          { measure: "importing and verifying", ...seconds(drawn, systemClock.monotonicMs()) },
        );
      }
      return { text: linesOf(all, rows), rows, pass: withinLimits(rows) };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** A folder for each seed, of what the publishers' code makes on this machine. */
async function madeAnew(environments: string, folder: string): Promise<string[] | Problem> {
  const made = Array.from({ length: SEEDS }, (_, seed) => join(folder, `seed-${seed}`));
  for (const [seed, out] of made.entries()) {
    const said = await output([join(VECTORS, "make.sh"), environments, out, String(seed)]);
    if (said instanceof Problem) return said;
  }
  return made;
}

async function comparedAll(
  checkpoints: readonly string[],
  { layout, robot }: (typeof LAYOUTS)[number],
  folder: string,
): Promise<Compared | Problem> {
  const compared: Compared = { layout, asked: 0, cases: 0, stages: new Map() };
  for (const checkpoint of checkpoints) {
    const text = await readFile(join(checkpoint, "golden/golden.json"), "utf8");
    const golden = Value.Decode(Golden, JSON.parse(text));
    const lengths = promptLengths(checkpoint, golden.cases.length);
    for (const { missing, numbers } of camerasOf(golden)) {
      const out = join(folder, "bundle");
      const said = await imported(checkpoint, join(VECTORS, robot, "robot.toml"), missing, out);
      if (said instanceof Problem) return said;
      const bundle = await readBundle(out);
      if (bundle instanceof Problem) return bundle;
      const tokensMax = bundle.manifest.prompt?.tokens_max ?? 1;
      // The publisher has cut a prompt that fills the model's, or it has that length by chance.
      const asked = numbers.filter((number) => (lengths[number] ?? 0) < tokensMax).length;
      if (asked === 0) continue;
      const found = await report(Verified, [...ownProgram(), "bundle", "verify", out, "--json"]);
      if (found instanceof Problem) return found;
      compared.asked += asked;
      compared.cases += found.golden.cases;
      for (const { stage, difference } of found.golden.stages) {
        compared.stages.set(stage, Math.max(compared.stages.get(stage) ?? 0, difference ?? Number.NaN));
      }
    }
  }
  return compared;
}

/** The tokens of each case's prompt as the publisher has them, 0 where it has none. */
function promptLengths(checkpoint: string, cases: number): number[] {
  const values = TensorFile.open(join(checkpoint, "golden/golden.safetensors"));
  if (values instanceof Problem) return [];
  const lengths = Array.from({ length: cases }, (_, at) => values.tensors.get(`${at}.tokens`)?.shape[0] ?? 0);
  values.close();
  return lengths;
}

/** The pictures that a case lacks though another has them, for each such set once, and the numbers of its cases. */
function camerasOf({ cases }: Static<typeof Golden>): { missing: string[]; numbers: number[] }[] {
  const keys = new Set(cases.flatMap(({ frames }) => Object.keys(frames).filter((key) => frames[key] !== null)));
  const sets = new Map<string, { missing: string[]; numbers: number[] }>();
  for (const [number, { frames }] of cases.entries()) {
    const missing = [...keys].filter((key) => frames[key] === null);
    const set = sets.get(missing.join()) ?? { missing, numbers: [] };
    set.numbers.push(number);
    sets.set(missing.join(), set);
  }
  return [...sets.values()];
}

/** Imports a checkpoint for the robot without the cameras of the pictures `missing`; what import said. */
async function imported(family: string, robotFile: string, missing: readonly string[], out: string) {
  const robot = `${out}.toml`;
  const lines = (await readFile(robotFile, "utf8")).split("\n");
  const kept = lines.filter((line) => !missing.some((key) => line.includes(`"${key}"`)));
  await writeFile(robot, [`missing_cameras = ${JSON.stringify(missing)}`, ...kept].join("\n"));
  const from = [join(family, "checkpoint"), "--golden", join(family, "golden")];
  const words = ["bundle", "import", ...from, "--robot", robot, "--id", "lab/imported", "--out", out, "--json"];
  return await output([...ownProgram(), ...words]);
}

/** What a command printed as JSON, also when it then said that a stage is off. */
async function report<Schema extends TSchema>(
  schema: Schema,
  words: readonly string[],
): Promise<Static<Schema> | Problem> {
  const child = Bun.spawn([...words], { env: childEnvironment({}), stdout: "pipe", stderr: "pipe" });
  const [printed, said] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const value = printed === "" ? undefined : JSON.parse(printed);
  return Value.Check(schema, value) ? value : new Problem(`${words.slice(1).join(" ")}: ${said.trim() || printed}`);
}

function figuresOf({ layout, asked, cases, stages }: Compared): Figure[] {
  const limitOf = (stage: Stage) => (stage === "tokens" ? 0 : DIFFERENCE_MAX);
  return [
    { measure: `${layout}: cases`, value: cases, unit: "1", least: asked },
    ...[...stages].map(([stage, value]) => ({
      measure: `${layout}: ${stage}`,
      value,
      unit: "1",
      limit: limitOf(stage),
    })),
  ];
}

/** A line for each stage of each layout, then what it cost. */
function linesOf(all: readonly Compared[], rows: readonly Figure[]): string {
  const stages = all.flatMap((one) => {
    const figures = figuresOf(one);
    return figures.map((figure, at) => {
      const value = at === 0 ? `${figure.value}, at least ${one.asked}` : figure.value.toExponential(1);
      const stage = figure.measure.slice(one.layout.length + 2);
      return [one.layout, stage, value, withinLimits([figure]) ? "PASS" : "FAIL"];
    });
  });
  const costs = rows
    .filter(({ limit, least }) => limit === undefined && least === undefined)
    .map(({ measure, value, unit }) => [measure, "", value.toFixed(0), unit]);
  const head = ["layout", "stage", "largest difference", ""];
  return table([head, ...stages, ...costs], ["left", "left", "right", "left"]);
}
