/** The files of a local folder as a run would hold them. */
import type { Dirent, Stats } from "node:fs";
import { access, constants, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { LIMITS } from "../../limits.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { pathProblem } from "../../std/run-names.ts";

export interface LocalFile {
  /** In the run: relative to the folder, with '/'. */
  readonly path: string;
  readonly file: string;
  readonly size: number;
  readonly mtimeMs: number;
}

export interface FolderList {
  /** In the order of their paths. */
  readonly files: readonly LocalFile[];
  /** Hidden files and folders, which are not part of the run. */
  readonly skipped: readonly string[];
}

/** The limits of a run: better met before the first byte is sent than after two gigabytes. */
const { runFilesMax: FILES_MAX, runBytesMax: BYTES_MAX } = LIMITS;

/** Everything in the folder, or the first thing that cannot be stored. */
export async function scan(folder: string): Promise<FolderList | Problem> {
  const files: LocalFile[] = [];
  const skipped: string[] = [];
  const problem = await walk(folder, "", { files, skipped });
  if (problem !== undefined) return problem;
  if (files.length === 0) return new Problem(`there is no file in '${printable(folder)}' that a run could hold`);
  const bytes = bytesOf(files);
  if (bytes > BYTES_MAX || files.length > FILES_MAX) {
    return new Problem(
      `'${printable(folder)}' has ${files.length} files and ${bytes} bytes; a run holds at most ${FILES_MAX} files and ${BYTES_MAX} bytes`,
    );
  }
  return { files: files.sort((a, b) => (a.path < b.path ? -1 : 1)), skipped };
}

export function bytesOf(files: readonly { readonly size: number }[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

interface Listing {
  readonly files: LocalFile[];
  readonly skipped: string[];
}

async function walk(root: string, below: string, found: Listing): Promise<Problem | undefined> {
  const entries = await tried(below || root, readdir(join(root, below), { withFileTypes: true }));
  if (entries instanceof Problem) return entries;
  for (const entry of entries) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.name.startsWith(".")) found.skipped.push(path);
    else {
      const problem = entry.isDirectory() ? await walk(root, path, found) : await add(root, path, entry, found);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

async function add(root: string, path: string, entry: Dirent, found: Listing): Promise<Problem | undefined> {
  if (!entry.isFile()) return notAFile(path, entry);
  const wrong = pathProblem(path.split("/"));
  if (wrong !== undefined)
    return new Problem(`'${printable(path)}' cannot be part of a run: its path ${wrong}; rename it`);
  const file = join(root, path);
  const stats = await tried(path, lstat(file));
  if (stats instanceof Problem) return stats;
  // Between the listing and now it may have become something else.
  if (!stats.isFile()) return notAFile(path, stats);
  const unreadable = await tried(path, access(file, constants.R_OK));
  if (unreadable instanceof Problem) return unreadable;
  found.files.push({ path, file, size: stats.size, mtimeMs: stats.mtimeMs });
  return undefined;
}

function notAFile(path: string, entry: Dirent | Stats): Problem {
  const what = entry.isSymbolicLink() ? "a symbolic link" : "not a regular file";
  return new Problem(`'${printable(path)}' is ${what}; a run holds regular files alone: replace or remove it`);
}

async function tried<T>(path: string, work: Promise<T>): Promise<T | Problem> {
  try {
    return await work;
  } catch (error) {
    return new Problem(`'${printable(path)}' cannot be read: ${(error as Error).message}`);
  }
}
