/**
 * Do bundles of published checkpoints compute what the publishers' own code does?
 *
 * The full size installs LeRobot and openpi from PyPI and has them make small checkpoints in their layouts, with golden values. It imports
 * and verifies these by the commands that a user has. The small size takes the checkpoints of the repository.
 *
 * A robot without a camera has a bundle without it, so a family has a bundle for each set of cameras that its cases have.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { childEnvironment } from "../src/config/environment.ts";
import { ownProgram } from "../src/measure/child.ts";
import { Problem } from "../src/std/problem.ts";
import { type Figure, judged, type Proof } from "./proof.ts";

const PUBLISHERS = join(import.meta.dir, "../test/vectors/publishers");
const FAMILIES = ["pi05-lerobot", "pi05-openpi", "act", "smolvla"] as const;
/** Asked for in float32, at every stage. */
const DIFFERENCE_MAX = 1e-4;

const Golden = Type.Object({
  cases: Type.Array(Type.Object({ frames: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()])) })),
});
const Verified = Type.Object({
  golden: Type.Object({
    cases: Type.Integer(),
    stages: Type.Array(Type.Object({ difference: Type.Union([Type.Number(), Type.Null()]) })),
  }),
});

export const published: Proof = {
  name: "import",
  question: "Do bundles of published checkpoints compute what the publishers' own code does?",
  async run(size) {
    const folder = await mkdtemp(join(tmpdir(), "tendon-import-"));
    try {
      const made = size === "small" ? PUBLISHERS : await madeAnew(folder);
      if (made instanceof Problem) return made;
      const rows: Figure[] = [];
      for (const family of FAMILIES) {
        for (const missing of await missingSets(join(made, family))) {
          const found = await imported(join(made, family), join(PUBLISHERS, family, "robot.toml"), missing, folder);
          if (found instanceof Problem) return found;
          const differences = found.golden.stages.map(({ difference }) => difference ?? Number.NaN);
          const name = `${family}${missing.map((key) => `, no ${key.split(".").at(-1)}`).join("")}`;
          rows.push({ measure: `${name}: cases`, value: found.golden.cases, unit: "1", least: 1 });
          const value = Math.max(...differences);
          rows.push({ measure: `${name}: largest difference`, value, unit: "1", limit: DIFFERENCE_MAX });
        }
      }
      return judged(rows);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** The folder of what the publishers' code makes on this machine. */
async function madeAnew(folder: string): Promise<string | Problem> {
  const [environments, out] = [join(folder, "environments"), join(folder, "made")];
  for (const words of [
    [join(import.meta.dir, "import/publishers.sh"), environments],
    [join(PUBLISHERS, "make.sh"), environments, out],
  ]) {
    const said = await output(words);
    if (said instanceof Problem) return said;
  }
  return out;
}

/** The pictures that a case lacks though another has them, for each such set once. */
async function missingSets(family: string): Promise<string[][]> {
  const { cases } = Value.Decode(Golden, JSON.parse(await readFile(join(family, "golden/golden.json"), "utf8")));
  const keys = new Set(cases.flatMap(({ frames }) => Object.keys(frames).filter((key) => frames[key] !== null)));
  const sets = cases.map(({ frames }) => [...keys].filter((key) => frames[key] === null));
  return [...new Map(sets.map((set) => [set.join(), set])).values()];
}

/** Imports a checkpoint for the robot without the cameras of the pictures `missing`, and compares it with its golden values. */
async function imported(family: string, robotFile: string, missing: readonly string[], folder: string) {
  const [robot, out] = [join(folder, "robot.toml"), join(folder, "bundle")];
  const lines = (await readFile(robotFile, "utf8")).split("\n");
  const kept = lines.filter((line) => !missing.some((key) => line.includes(`"${key}"`)));
  await writeFile(robot, [`missing_cameras = ${JSON.stringify(missing)}`, ...kept].join("\n"));
  const from = [join(family, "checkpoint"), "--golden", join(family, "golden")];
  const words = ["bundle", "import", ...from, "--robot", robot, "--id", "lab/imported", "--out", out, "--json"];
  const said = await output([...ownProgram(), ...words]);
  if (said instanceof Problem) return said;
  return await report(Verified, [...ownProgram(), "bundle", "verify", out, "--json"]);
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

async function output(words: readonly string[]): Promise<string | Problem> {
  const child = Bun.spawn([...words], { env: childEnvironment({}), stdout: "pipe", stderr: "pipe" });
  const [printed, said, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return code === 0 ? printed : new Problem(`${words.join(" ")}: ${said.trim()}`);
}
