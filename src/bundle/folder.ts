/** Writes a bundle's folder whole or not at all: under another name, then renamed. */
import { renameSync, rmSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Problem } from "../std/problem.ts";
import { inTemporaryFolder } from "../std/temporary-folder.ts";
import { reason } from "./schema.ts";

/** Whether a folder stands there. Only a bundle or an empty folder is replaced. */
export async function standsAt(outDir: string): Promise<boolean | Problem> {
  const standing = await readdir(outDir).catch(() => undefined);
  if (standing !== undefined && standing.length > 0 && !standing.includes("manifest.json"))
    return new Problem(`${outDir} holds something else than a bundle; choose another --out or empty it`);
  return standing !== undefined;
}

/** `fill` writes all files into the folder that it is given; with a problem nothing stays. */
export async function writeFolder(
  outDir: string,
  fill: (folder: string) => Promise<Problem | undefined>,
): Promise<Problem | undefined> {
  try {
    const standing = await standsAt(outDir);
    if (standing instanceof Problem) return standing;
    await mkdir(dirname(outDir), { recursive: true });
    return await inTemporaryFolder(`${outDir}.building-`, async (building) => {
      const problem = await fill(building);
      if (problem !== undefined) return problem;
      // rename() cannot replace a folder that has files: the old one is renamed first. No signal is heard before the new one is there.
      const old = `${building}.old`;
      if (standing) renameSync(outDir, old);
      renameSync(building, outDir);
      rmSync(old, { recursive: true, force: true });
      return undefined;
    });
  } catch (error) {
    return new Problem(
      `the bundle cannot be written to ${outDir} (${reason(error)}); free the place or choose another --out`,
    );
  }
}

/** Writes files by their paths in the folder. */
export async function writeFiles(folder: string, data: ReadonlyMap<string, Uint8Array>): Promise<void> {
  for (const [path, bytes] of data) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), bytes);
  }
}
