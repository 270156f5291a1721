/** The check of `tendon doctor` of where the bytes of runs lie: a folder with room, or an object store that is reached. */
import { join } from "node:path";
import type { S3Options } from "../../config/blobs.ts";
import type { ServeConfig } from "../../config/serve.ts";
import { LIMITS } from "../../limits.ts";
import { runDiskFloorBytes } from "../../runs/blob/staging.ts";
import { blobBackend } from "../../service/blobs.ts";
import { printable } from "../../std/printable.ts";
import { type Check, green, red } from "./checks.ts";
import { type DataFolder, dataFolder } from "./data-folder.ts";

const NAME = "run storage";

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
    return green(NAME, found, local.todo);
  } catch (error) {
    return red(NAME, printable((error as Error).message));
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
    return red(NAME, `${wrong.path} is ${wrong.state}; ${todo}`);
  }
  const freeBytes = Math.min(...folders.map((folder) => folder.freeBytes));
  const found = `${folders[0]?.path}: ${freeBytes} bytes free (${(freeBytes / 2 ** 30).toFixed(1)} GiB)`;
  // Uploads leave the floor free.
  const room = Math.min(...folders.map((folder) => folder.freeBytes - runDiskFloorBytes(folder.diskBytes)));
  if (room < LIMITS.runFileBytesMax) {
    return red(
      NAME,
      `${found}; delete runs (their bytes go a minute later), free that disk, or name a bucket in TENDON_BLOBS`,
    );
  }
  const note = "above what stays free that is less than one run may have; free some, or uploads will be refused";
  return green(NAME, found, room < LIMITS.runBytesMax ? note : undefined);
}
