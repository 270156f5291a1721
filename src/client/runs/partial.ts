/** A file that is being fetched: `FILE.partial` until its digest is right, then FILE. */
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, rename } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { syncFolder } from "../../std/file.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";
import { digestOf } from "./piece.ts";

export interface Target {
  readonly folder: string;
  /** Within it; checked. */
  readonly path: string;
  /** Names that are taken by other files. */
  readonly paths: ReadonlySet<string>;
}

/** Whether the file is there with these contents. */
export async function isThere(
  { folder, path }: Target,
  file: { readonly size: number; readonly sha256: string },
  signal: AbortSignal,
): Promise<boolean> {
  const found = await lstat(join(folder, path)).catch(() => undefined);
  if (found?.isFile() !== true || found.size !== file.size) return false;
  return (await digestOf({ file: join(folder, path), start: 0, end: file.size }, signal)) === file.sha256;
}

export class Partial {
  private constructor(
    private readonly file: FileHandle,
    private readonly name: string,
    private readonly target: Target,
    /** Bytes in the file. */
    private bytes: number,
  ) {}

  /** With what an earlier pull has fetched, unless that is more than `size`. */
  static async open(target: Target, size: number): Promise<Partial | Problem> {
    const { folder, path, paths } = target;
    let suffix = ".partial";
    while (paths.has(path + suffix)) suffix += ".partial";
    const name = join(folder, path + suffix);
    return await onDisk(path, async () => {
      await makeFolders(folder, path);
      // A link in its place would be followed out of the folder.
      const flags =
        constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      const file = await open(name, flags, 0o666);
      try {
        const found = (await file.stat()).size;
        if (found > size) await file.truncate(0);
        return new Partial(file, name, target, found > size ? 0 : found);
      } catch (error) {
        await file.close();
        throw error;
      }
    });
  }

  get offset(): number {
    return this.bytes;
  }

  /** SHA-256 of what lies on the disk. */
  sha256(signal: AbortSignal): Promise<string | Problem> {
    return digestOf({ file: this.name, start: 0, end: this.bytes }, signal);
  }

  async append(block: Uint8Array): Promise<Problem | undefined> {
    const problem = await onDisk(this.target.path, () => this.file.appendFile(block));
    if (problem !== undefined) return problem;
    this.bytes += block.length;
    return undefined;
  }

  async restart(): Promise<Problem | undefined> {
    this.bytes = 0;
    return await onDisk(this.target.path, async () => {
      await this.file.truncate(0);
      return undefined;
    });
  }

  /** Under its name, with bytes that are durable; the name is so after `settle`. An older file of that name is replaced. */
  async publish(): Promise<Problem | undefined> {
    const { folder, path } = this.target;
    return await onDisk(path, async () => {
      await this.file.sync();
      await rename(this.name, join(folder, path));
      return undefined;
    });
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}

/** The folders on the way to the file, one by one: a link among them could lead out of `folder`. */
async function makeFolders(folder: string, path: string): Promise<void> {
  let way = folder;
  for (const segment of path.split("/").slice(0, -1)) {
    way = join(way, segment);
    await mkdir(way).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    if (!(await lstat(way)).isDirectory()) throw new Error(`'${segment}' on its way is no folder; remove it`);
  }
}

/**
 * Makes the names of files durable, in the folders from `top` down: a user who has pulled a run may delete it at the service. Once for
 * all files, because of small ones there are thousands.
 */
export async function settle(folder: string, top: string, paths: Iterable<string>): Promise<Problem | undefined> {
  const folders = new Set([resolve(top)]);
  for (const path of ["", ...paths]) {
    for (let way = resolve(folder, dirname(path)); !folders.has(way); way = dirname(way)) folders.add(way);
  }
  for (const one of folders) {
    const problem = await onDisk(one, () => syncFolder(one));
    if (problem instanceof Problem) return problem;
  }
  return undefined;
}

async function onDisk<T>(path: string, work: () => Promise<T>): Promise<T | Problem> {
  try {
    return await work();
  } catch (error) {
    return new Problem(`'${printable(path)}' cannot be written: ${(error as Error).message}`);
  }
}
