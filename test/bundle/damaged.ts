/** A good bundle, made once per test file, and copies of it that may be damaged. */
import { beforeAll, expect } from "bun:test";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readBundle } from "../../src/bundle/read.ts";
import { Problem } from "../../src/std/problem.ts";
import { buildInto, emptyDir } from "./built.ts";
import type { FlowManifest } from "./flow-bundle.ts";

export let good: string;
export let manifest: FlowManifest;

beforeAll(async () => {
  good = join(await emptyDir(), "good");
  manifest = await buildInto(good);
});

/** A copy of the good bundle that may be damaged. */
export async function copy(): Promise<string> {
  const dir = join(await emptyDir(), "copy");
  await cp(good, dir, { recursive: true });
  return dir;
}

/** The message about a copy of the bundle whose manifest has been edited. */
export async function edited(edit: (manifest: FlowManifest) => unknown): Promise<string> {
  const dir = await copy();
  const changed = structuredClone(manifest);
  const replaced = edit(changed);
  await writeFile(join(dir, "manifest.json"), JSON.stringify(replaced ?? changed));
  return await messageOf(dir);
}

export async function messageOf(dir: string): Promise<string> {
  const read = await readBundle(dir);
  expect(read).toBeInstanceOf(Problem);
  return read instanceof Problem ? read.message : "";
}
