/**
 * Unpacks what the executable carries: into a cache folder, or into memory files where no folder will do.
 *
 * The folder is named by the digest of its content, made under another name and renamed when it is whole, 0700, and
 * verified at each start: a half-written, changed or foreign file is never opened.
 */
import { dlopen, FFIType } from "bun:ffi";
import { createHash, randomBytes } from "node:crypto";
import { writeSync } from "node:fs";
import { chmod, lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { present } from "../std/assert.ts";
import { systemClock } from "../std/clock.ts";
import type { EmbeddedFile } from "./embedded.ts";

/** Ten minutes. */
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
    // A file system that is mounted noexec says so only here. The library stays open: it is opened for real next.
    dlopen(join(folder, probe), { tendon_version: { args: [], returns: FFIType.ptr } });
    return { source: "cache", note: folder, paths: new Map(files.map(({ path }) => [path, join(folder, path)])) };
  } catch (error) {
    const reason = `${cache} cannot be used: ${(error as Error).message}`;
    return { source: "memory", note: reason, paths: await memoryFiles(files) };
  }
}

/** Whoever may write to the folder above could put another one in our folder's place after it was verified. */
async function refuseForeign(cache: string): Promise<void> {
  const found = await lstat(cache);
  const ours = found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
  if (!ours) throw new Error("it is not a folder that this user alone may write to");
}

/** True when the folder is ours alone and every file has its digest. */
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
  if (!found?.isFile()) return undefined;
  return createHash("sha256")
    .update(await Bun.file(path).bytes())
    .digest("hex");
}

/** Writes a new folder beside its place and renames it; one that is there and not whole goes first. */
async function write(files: readonly EmbeddedFile[], folder: string): Promise<void> {
  await removeLeftovers(dirname(folder));
  const making = `${folder}.making-${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await mkdir(making, { mode: 0o700 });
    await Promise.all(
      files.map(async (file) => {
        const path = join(making, file.path);
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        const handle = await open(path, "wx", 0o600);
        try {
          await handle.writeFile(await content(file));
        } finally {
          await handle.close();
        }
      }),
    );
    await replace(making, folder, files);
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    throw error;
  }
}

/** Moves the new folder into its place. Another process may have been faster: then its folder serves, if it is whole. */
async function replace(making: string, folder: string, files: readonly EmbeddedFile[]): Promise<void> {
  try {
    await rename(making, folder);
    return;
  } catch {
    if (await isWhole(files, folder)) {
      await rm(making, { recursive: true, force: true });
      return;
    }
  }
  const broken = `${making}.old`;
  await rename(folder, broken);
  await rename(making, folder);
  await rm(broken, { recursive: true, force: true });
}

/** Removes what killed processes left half-made: no unpacking takes this long, here or in a container beside us. */
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
  const digest = createHash("sha256").update(bytes).digest("hex");
  if (bytes.length !== file.size || digest !== file.sha256)
    throw new Error(`${file.path} inside the executable is damaged`);
  return bytes;
}

/** One anonymous file in memory per embedded file, open for the life of the process. */
async function memoryFiles(files: readonly EmbeddedFile[]): Promise<Map<string, string>> {
  const libc = dlopen("libc.so.6", { memfd_create: { args: [FFIType.cstring, FFIType.u32], returns: FFIType.i32 } });
  const closeOnExec = 1;
  const paths = new Map<string, string>();
  for (const file of files) {
    const bytes = await content(file);
    const name = Buffer.from(`${present(file.path.split("/").at(-1), "a file name")}\0`);
    const descriptor = libc.symbols.memfd_create(name, closeOnExec);
    if (descriptor < 0) throw new Error("the system gives no memory files (memfd_create failed)");
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    paths.set(file.path, `/proc/self/fd/${descriptor}`);
  }
  libc.close();
  return paths;
}
