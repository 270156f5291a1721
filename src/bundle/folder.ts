/** Writes a bundle's folder whole or not at all: under another name, then renamed. */
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Problem } from "../std/problem.ts";
import { reason } from "./schema.ts";

/** Only a bundle or an empty folder is replaced. `fill` writes all files into the folder that it is given; with a problem nothing stays. */
export async function writeFolder(
  outDir: string,
  fill: (folder: string) => Promise<Problem | undefined>,
): Promise<Problem | undefined> {
  let building: string | undefined;
  try {
    await mkdir(dirname(outDir), { recursive: true });
    const standing = await readdir(outDir).catch(() => undefined);
    if (standing !== undefined && standing.length > 0 && !standing.includes("manifest.json")) {
      return new Problem(`${outDir} holds something else than a bundle; choose another --out or empty it`);
    }
    building = await mkdtemp(`${outDir}.building-`);
    const problem = await fill(building);
    if (problem !== undefined) {
      await rm(building, { recursive: true, force: true });
      return problem;
    }
    // rename() cannot replace a folder that has files: the old one is renamed first.
    const old = `${building}.old`;
    if (standing !== undefined) await rename(outDir, old);
    await rename(building, outDir);
    await rm(old, { recursive: true, force: true });
    return undefined;
  } catch (error) {
    if (building !== undefined) await rm(building, { recursive: true, force: true });
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
