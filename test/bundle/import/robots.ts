/** Robot files for the published checkpoints of test/vectors/publishers. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { importBundle } from "../../../src/bundle/import/import.ts";
import { computeRows } from "../../../src/cli/bundle/rows.ts";
import { sampleFrames } from "../../../src/measure/sample/drawing.ts";
import { ok } from "../../engine/opened.ts";
import { emptyDir } from "../built.ts";

export const PUBLISHERS = join(import.meta.dir, "../../vectors/publishers");

export interface RobotWords {
  /** Short keys of the pictures that the robot has; its cameras have the same names. */
  readonly cameras: readonly string[];
  readonly missing?: readonly string[];
  readonly columns: readonly string[];
  /** Whether an action column is relative; absent, the file does not say. */
  readonly isRelative?: (column: number) => boolean;
}

/** TOML of a robot whose state and actions have the same columns. */
export function robotToml({ cameras, missing = [], columns, isRelative }: RobotWords): string {
  const list = (name: string, lines: readonly string[]) =>
    `${name} = [\n${lines.map((line) => `  ${line},\n`).join("")}]`;
  const relative = (name: string, at: number) => {
    return isRelative ? `, relative_to = "${isRelative(at) ? name : "none"}"` : "";
  };
  return [
    'licence = "test"',
    "hz = 20",
    'out_of_range = "fail"',
    'state_kind = "vector"',
    list(
      "cameras",
      cameras.map((name) => `{ name = "${name}", key = "observation.images.${name}" }`),
    ),
    `missing_cameras = ${JSON.stringify(missing)}`,
    list(
      "state",
      columns.map((name) => `{ name = "${name}", unit = "rad" }`),
    ),
    list(
      "actions",
      columns.map(
        (name, at) =>
          `{ name = "${name}", unit = "rad", min = -100.0, max = 100.0, max_step = 1e-6${relative(name, at)} }`,
      ),
    ),
  ].join("\n");
}

/** Writes the file; its path. */
export async function robotFile(words: RobotWords | string): Promise<string> {
  const path = join(await emptyDir(), "robot.toml");
  await writeFile(path, typeof words === "string" ? words : robotToml(words));
  return path;
}

/** A bundle of the small ACT checkpoint, whose frames must have one size, without golden values. */
export async function importAct(out: string, id: string): Promise<void> {
  const folder = join(PUBLISHERS, "act");
  ok(
    await importBundle(join(folder, "checkpoint"), out, {
      ...{ id, robot: join(folder, "robot.toml"), precision: "f32", computeRows },
      draw: (size) => sampleFrames(0, size),
    }),
  );
}
