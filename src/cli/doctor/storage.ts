/** The checks of `tendon doctor` of where data lie: the data folder, and the folder or the object store of runs. */
import { existsSync } from "node:fs";
import { access, constants, stat, statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { S3Options } from "../../config/blobs.ts";
import type { ServeConfig } from "../../config/serve.ts";
import { LIMITS } from "../../limits.ts";
import { runDiskFloorBytes } from "../../runs/blob/staging.ts";
import { blobBackend } from "../../service/blobs.ts";
import { printable } from "../../std/printable.ts";
import { type Check, green, red } from "./checks.ts";

/** The data folder as the file system shows it. */
export interface DataFolder {
  readonly path: string;
  readonly state: "absent" | "usable" | "not a folder" | "not writable";
  /** Permission bits, 0 to 0o777. */
  readonly mode: number;
  readonly freeBytes: number;
  /** The size of the whole file system. */
  readonly diskBytes: number;
}

const FREE_BYTES_MIN = 256 * 2 ** 20;

export function folderCheck({ path, state, mode, freeBytes }: DataFolder): Check {
  const found = `${path}: ${state === "absent" ? "made at the first start" : state}, ${(freeBytes / 2 ** 30).toFixed(1)} GiB free`;
  const name = "data folder";
  if (state === "not a folder" || state === "not writable") {
    return red(name, `${found}; name a folder that you may write to with --data or TENDON_DATA`);
  }
  if (freeBytes < FREE_BYTES_MIN) {
    return red(name, `${found}; free at least 256 MiB on that disk, or name another with --data`);
  }
  if (state === "usable" && (mode & 0o077) !== 0) return red(name, `${found}, open to other users; chmod 700 ${path}`);
  return green(name, found);
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

const RUNS = "run storage";

type Where = Pick<ServeConfig, "blobs" | "dataDir">;

/** An object store is written to and read from once, as at the start of `serve`. */
export async function runStorageCheck(where: Where): Promise<Check> {
  // What arrives is in the data folder first, wherever it goes then.
  const names = where.blobs === undefined ? ["blobs", "parts", "staging"] : ["staging"];
  const folders = await Promise.all(names.map((name) => dataFolder(join(where.dataDir, name))));
  const local = runFoldersCheck(folders);
  if (where.blobs === undefined || !local.ok) return local;
  const found = `${addressOf(where.blobs)}, written to, read and listed`;
  try {
    await (await blobBackend(where)).check();
    return green(RUNS, found, local.todo);
  } catch (error) {
    return red(RUNS, printable((error as Error).message));
  }
}

function addressOf({ bucket, prefix, endpoint, region }: S3Options): string {
  return `s3://${bucket}${prefix === "" ? "" : `/${prefix}`} ${endpoint === undefined ? `of AWS in ${region}` : `at ${endpoint}`}`;
}

/** The folders as the file system shows them; the first is where the bytes stay. */
export function runFoldersCheck(folders: readonly DataFolder[]): Check {
  const wrong = folders.find(({ state }) => state === "not a folder" || state === "not writable");
  if (wrong) {
    const todo = `give it to the user that the service runs as: chown -R USER ${wrong.path}`;
    return red(RUNS, `${wrong.path} is ${wrong.state}; ${todo}`);
  }
  const freeBytes = Math.min(...folders.map((folder) => folder.freeBytes));
  const found = `${folders[0]?.path}: ${freeBytes} bytes free (${(freeBytes / 2 ** 30).toFixed(1)} GiB)`;
  // Uploads leave the floor free.
  const room = Math.min(...folders.map((folder) => folder.freeBytes - runDiskFloorBytes(folder.diskBytes)));
  if (room < LIMITS.runFileBytesMax) {
    return red(
      RUNS,
      `${found}; delete runs (their bytes go a minute later), free that disk, or name a bucket in TENDON_BLOBS`,
    );
  }
  const note = "above what stays free that is less than one run may have; free some, or uploads will be refused";
  return green(RUNS, found, room < LIMITS.runBytesMax ? note : undefined);
}
