/**
 * Unpacks the libraries and bundles inside the executable: into a cache folder, or into memory files if no folder is usable.
 *
 * The folder has mode 0700 and is named by the digest of its content. It is written under another name and renamed when it is
 * complete, and verified at each start, so that a half-written, changed or foreign file is never opened (file-digest.ts: a file that nobody
 * has changed since is not read again by `serve`).
 */
import { randomBytes } from "node:crypto";
import { writeSync } from "node:fs";
import { chmod, lstat, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemClock } from "../std/clock.ts";
import { bytesDigest, fileDigest, noteDigest } from "../std/file-digest.ts";
import { Problem } from "../std/problem.ts";
import { bindLibrary, memoryFile } from "./binding.ts";
import type { EmbeddedFile } from "./embedded.ts";

/** After this time a half-made folder is left over from a killed process: no unpacking takes this long. */
const LEFTOVER_MS = 600_000;

export interface Payload {
  readonly source: "cache" | "memory";
  /** The folder, or for memory files the reason why there is none. */
  readonly note: string;
  /** Absolute path per embedded path. */
  readonly paths: ReadonlyMap<string, string>;
}

/**
 * Unpacks all files below `cache/id`, or returns memory files when that folder cannot be used. `probe` is the embedded
 * path of a library that is opened to see whether files there may be executed at all.
 */
export async function unpack(
  files: readonly EmbeddedFile[],
  id: string,
  cache: string,
  probe: string,
): Promise<Payload> {
  const folder = join(cache, id);
  try {
    await mkdir(cache, { recursive: true, mode: 0o700 });
    await refuseForeign(cache);
    if (!(await isWhole(files, folder))) await write(files, folder);
    // Opening shows whether the file system is mounted noexec. The library stays open, since it is needed anyway.
    const bound = bindLibrary(join(folder, probe));
    if (bound instanceof Problem) throw new Error(bound.message);
    return { source: "cache", note: folder, paths: new Map(files.map(({ path }) => [path, join(folder, path)])) };
  } catch (error) {
    const reason = `${cache} cannot be used: ${(error as Error).message}`;
    return { source: "memory", note: reason, paths: await memoryFiles(files) };
  }
}

/** Who may write to the parent folder could replace our folder after it was verified. */
async function refuseForeign(cache: string): Promise<void> {
  const found = await lstat(cache);
  const ours = found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
  if (!ours) throw new Error("it is not a folder that this user alone may write to");
}

/** Whether the folder belongs to this user alone and every file has its digest. */
async function isWhole(files: readonly EmbeddedFile[], folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined);
  if (found === undefined) return false;
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new Error(`${folder} is not a folder of this user; remove it`);
  }
  if ((found.mode & 0o077) !== 0) await chmod(folder, 0o700);
  const digests = await Promise.all(
    files.map(async (file) => (await digestOf(join(folder, file.path))) === file.sha256),
  );
  return digests.every(Boolean);
}

async function digestOf(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isFile() ? await fileDigest(path) : undefined;
}

/** Writes the folder under another name and renames it; an incomplete one in its place is removed. */
async function write(files: readonly EmbeddedFile[], folder: string): Promise<void> {
  await removeLeftovers(dirname(folder));
  const making = `${folder}.making-${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await mkdir(making, { mode: 0o700 });
    await Promise.all(
      files.map(async (file) => {
        const path = join(making, file.path);
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await writeFile(path, await content(file), { flag: "wx", mode: 0o600 });
        await noteDigest(join(folder, file.path), path, file.sha256);
      }),
    );
    await replace(making, folder, files);
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    throw error;
  }
}

/** Moves the new folder into its place. If another process was faster, its folder is used, provided it is complete. */
async function replace(making: string, folder: string, files: readonly EmbeddedFile[]): Promise<void> {
  try {
    return await rename(making, folder);
  } catch {
    if (await isWhole(files, folder)) return await rm(making, { recursive: true, force: true });
  }
  const broken = `${making}.old`;
  await rename(folder, broken);
  await rename(making, folder);
  await rm(broken, { recursive: true, force: true });
}

/** Removes half-made folders of killed processes, by age: a process id may belong to another container. */
async function removeLeftovers(parent: string): Promise<void> {
  const old = systemClock.unixMs() - LEFTOVER_MS;
  for (const name of await readdir(parent)) {
    const found = name.includes(".making-") ? await lstat(join(parent, name)).catch(() => undefined) : undefined;
    if (found === undefined || found.mtimeMs > old) continue;
    await rm(join(parent, name), { recursive: true, force: true });
  }
}

async function content(file: EmbeddedFile): Promise<Uint8Array> {
  const bytes = await Bun.zstdDecompress(await Bun.file(file.asset).bytes());
  const good = bytes.length === file.size && (await bytesDigest(bytes)) === file.sha256;
  if (!good) throw new Error(`${file.path} inside the executable is damaged`);
  return bytes;
}

/** One anonymous file in memory per embedded file, open for the life of the process. */
async function memoryFiles(files: readonly EmbeddedFile[]): Promise<Map<string, string>> {
  const paths = new Map<string, string>();
  for (const file of files) {
    const bytes = await content(file);
    const descriptor = memoryFile(basename(file.path));
    if (descriptor < 0) throw new Error("the system gives no memory files (memfd_create failed)");
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    paths.set(file.path, `/proc/self/fd/${descriptor}`);
  }
  return paths;
}
