/** Golden values beside a checkpoint: copied into the bundle, with its cameras' names in place of the checkpoint's. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Problem } from "../../std/problem.ts";
import type { BundleFacts } from "../architecture.ts";
import { CHUNK } from "../draft.ts";
import { goldenFault } from "../golden.ts";
import { Golden } from "../manifest.ts";
import { readJson, reason } from "../schema.ts";
import { cameraOf, type Robot } from "./robot-file.ts";
import { TensorFile } from "./safetensors.ts";

export interface GoldenFiles {
  /** Names in the folder `parity` of a bundle → bytes. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The first case that has pictures of all cameras of the robot and of no other. */
  readonly first: Golden["cases"][number];
}

const CASES = "golden.json";
const VALUES = "golden.safetensors";
const ADVICE = "name a folder that the publisher's code has written";
export const GOLDEN = { cases: `parity/${CASES}`, values: `parity/${VALUES}` } as const;

/** The problem: all that reading the bundle would refuse, before gigabytes are read and written. */
export async function readGoldenFiles(
  dir: string,
  { cameras }: Robot,
  facts: BundleFacts,
): Promise<GoldenFiles | Problem> {
  const golden = await readJson(join(dir, CASES), Golden, ADVICE);
  if (golden instanceof Problem) return golden;
  const cases = golden.cases.map(({ frames, ...one }) => {
    return {
      ...one,
      frames: Object.fromEntries(
        Object.entries(frames).map(([key, name]) => [cameraOf({ cameras }, key) ?? key, name]),
      ),
    };
  });
  const names = new Set(cameras.map(({ name }) => name));
  const first = cases.find(({ frames }) => {
    const shown = Object.keys(frames).filter((name) => frames[name] !== null);
    return shown.length === names.size && shown.every((name) => names.has(name));
  });
  if (first === undefined)
    return new Problem(`${dir} has no case with a picture of ${[...names].join(", ")} and of no other; ${ADVICE}`);
  const files = new Map<string, Uint8Array>();
  const pictures = cases.flatMap(({ frames }) => Object.values(frames).filter((name) => name !== null));
  const unfit = pictures.find((name) => !/^[A-Za-z0-9._-]+$/.test(name) || [CASES, VALUES, CHUNK].includes(name));
  if (unfit !== undefined) {
    const expected = `letters, digits, ".", "_" and "-", and none of ${CASES}, ${VALUES}, ${CHUNK}`;
    return new Problem(`${join(dir, CASES)}: a frame is called ${unfit}, expected ${expected}; rename the file`);
  }
  for (const name of new Set([VALUES, ...pictures])) {
    try {
      files.set(name, await readFile(join(dir, name)));
    } catch (error) {
      return new Problem(`${join(dir, name)} cannot be read (${reason(error)}); ${ADVICE}`);
    }
  }
  const values = TensorFile.open(join(dir, VALUES));
  if (values instanceof Problem) return values;
  values.close();
  const listed = [...files.keys()].map((name) => ({ path: `parity/${name}` }));
  const fault = goldenFault({ ...facts, parity: { golden: GOLDEN }, files: listed }, { ...golden, cases });
  if (fault !== undefined) return new Problem(`${join(dir, CASES)}: ${fault}; ${ADVICE}`);
  files.set(CASES, new TextEncoder().encode(`${JSON.stringify({ ...golden, cases }, null, 2)}\n`));
  return { files, first };
}
