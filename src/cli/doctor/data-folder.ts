/** The data folder's check of `tendon doctor`: what the file system shows, and what to do about it. */
import { existsSync } from "node:fs";
import { access, constants, stat, statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Check } from "./checks.ts";

/** The data folder as the file system shows it. */
export interface DataFolder {
  readonly path: string;
  readonly state: "absent" | "usable" | "not a folder" | "not writable";
  /** Permission bits, 0 to 0o777. */
  readonly mode: number;
  readonly freeBytes: number;
  /** Of the whole file system. */
  readonly diskBytes: number;
}

const FREE_BYTES_MIN = 256 * 2 ** 20;

export function folderCheck({ path, state, mode, freeBytes }: DataFolder): Check {
  const found = `${path}: ${state === "absent" ? "made at the first start" : state}, ${(freeBytes / 2 ** 30).toFixed(1)} GiB free`;
  const red = (todo: string, what = found): Check => ({ name: "data folder", ok: false, found: what, todo });
  if (state === "not a folder" || state === "not writable") {
    return red("name a folder that you may write to with --data or TENDON_DATA");
  }
  if (freeBytes < FREE_BYTES_MIN) return red("free at least 256 MiB on that disk, or name another with --data");
  if (state === "usable" && (mode & 0o077) !== 0) return red(`chmod 700 ${path}`, `${found}, open to other users`);
  return { name: "data folder", ok: true, found };
}

/** The folder as it is, or where it would be made: asked without making or changing anything. */
export async function dataFolder(dir: string): Promise<DataFolder> {
  const path = resolve(dir);
  let place = path;
  while (!existsSync(place) && place !== dirname(place)) place = dirname(place);
  const found = await stat(place).catch(() => undefined);
  const writable = await access(place, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  const disk = await statfs(place).catch(() => undefined);
  const freeBytes = disk === undefined ? 0 : disk.bavail * disk.bsize;
  const diskBytes = disk === undefined ? 0 : disk.blocks * disk.bsize;
  const mode = (found?.mode ?? 0) & 0o777;
  if (!found?.isDirectory()) return { path, state: "not a folder", mode, freeBytes, diskBytes };
  if (!writable) return { path, state: "not writable", mode, freeBytes, diskBytes };
  return { path, state: place === path ? "usable" : "absent", mode, freeBytes, diskBytes };
}
