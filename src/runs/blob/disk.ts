/** Files and folders on the disk: written in pieces, and durable after a loss of power. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "../../std/file.ts";
import type { Joined } from "./backend.ts";

/** The stream of a copy reads ahead, so that the disk and the digest work side by side. */
const COPY_BYTES = 512 * 1024;

/** Folders that this process has made durable: each was made, and synced with the one above it. */
export class Folders {
  private readonly known = new Map<string, Promise<void>>();

  constructor(private readonly make = makeFolder) {}

  /** A second caller waits for the first one, because a file in a folder that is not synced can be lost with it. */
  made(path: string): Promise<void> {
    const known = this.known.get(path);
    if (known !== undefined) return known;
    const made = this.make(path);
    this.known.set(path, made);
    made.catch(() => this.known.delete(path));
    return made;
  }

  forget(path: string): void {
    this.known.delete(path);
  }
}

/** An existing folder is synced, too: the process that made it may have been killed before its sync. */
async function makeFolder(path: string): Promise<void> {
  const highest = (await mkdir(path, { recursive: true, mode: 0o700 })) ?? path;
  for (let made = path; ; made = dirname(made)) {
    await syncFolder(dirname(made));
    if (made.length <= highest.length) return;
  }
}

export async function syncFile(path: string): Promise<void> {
  const file = await open(path, "r+");
  await file.datasync().finally(() => file.close());
}

/** Copies the files one after another into a new, synced file. Rejects with ENOENT if one is missing; the new file is then removed. */
export async function copyFiles(from: readonly string[], to: string): Promise<Joined> {
  const target = await open(to, "wx", 0o600);
  try {
    const hash = createHash("sha256");
    let size = 0;
    for (const path of from) {
      const source: AsyncIterable<Uint8Array> = createReadStream(path, { highWaterMark: COPY_BYTES });
      for await (const piece of source) {
        const written = writeAll(target, piece, size);
        hash.update(piece);
        await written;
        size += piece.length;
      }
    }
    await target.datasync();
    return { size, sha256: new Uint8Array(hash.digest()) };
  } catch (error) {
    await rm(to, { force: true });
    throw error;
  } finally {
    await target.close();
  }
}

/** Writes all bytes at the offset; `wrote` is called with the size of each piece that is written. */
export async function writeAll(
  file: FileHandle,
  bytes: Uint8Array,
  at: number,
  wrote: (bytes: number) => void = () => {},
): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
    wrote(bytesWritten);
  }
}
