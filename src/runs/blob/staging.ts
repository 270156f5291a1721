/**
 * Bodies that arrive: each is a file in a folder of this process, and its digest is computed on the way.
 *
 * The disk must keep room for the database. If uploads filled it, no chunk could be settled, no run be deleted, and the next start
 * would fail. So a body that would leave less than the floor is refused before its first byte.
 */
import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Staged } from "./backend.ts";
import { writeAll } from "./disk.ts";

export class Staging {
  private count = 0;

  constructor(
    private readonly folder: string,
    readonly room: Room,
  ) {}

  async empty(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
  }

  /** A file of `size` bytes. Rejects if the disk has no room for it. */
  async receive(size: number): Promise<Arriving> {
    this.count += 1;
    const path = join(this.folder, String(this.count));
    const claim = await this.room.claim(size);
    try {
      return new Arriving(path, await open(path, "wx", 0o600), claim);
    } catch (error) {
      claim.end();
      throw error;
    }
  }

  async remove({ path }: Staged): Promise<void> {
    await rm(path, { force: true });
  }
}

export class Arriving {
  private readonly hash = createHash("sha256");
  private size = 0;
  private readonly writing = new Set<Promise<void>>();
  /** The reason why nothing more is written. */
  private error: unknown;

  constructor(
    private readonly path: string,
    private readonly file: FileHandle,
    private readonly claim: Claim,
  ) {}

  /** Resolves when the bytes may be overwritten. */
  async add(bytes: Uint8Array): Promise<void> {
    if (this.error === undefined) await this.write(bytes);
    if (this.error !== undefined) throw this.error;
  }

  private async write(bytes: Uint8Array): Promise<void> {
    const at = this.size;
    this.size += bytes.length;
    const write = writeAll(this.file, bytes, at, (count) => this.claim.came(count)).catch((error: unknown) => {
      this.error ??= error ?? new Error("the write failed");
    });
    this.writing.add(write);
    // The digest is computed while the disk writes.
    this.hash.update(bytes);
    await write;
    this.writing.delete(write);
  }

  async end(): Promise<Staged> {
    await Promise.all(this.writing);
    this.claim.end();
    await this.file.close();
    if (this.error !== undefined) throw this.error;
    return { path: this.path, size: this.size, sha256: new Uint8Array(this.hash.digest()) };
  }

  async drop(): Promise<void> {
    this.error ??= new Error("dropped");
    await Promise.all(this.writing);
    this.claim.end();
    await this.file.close().catch(() => {});
    await rm(this.path, { force: true });
  }
}

const GiB = 2 ** 30;

/** The bytes that uploads leave free. The database and its log fill them in days, not in minutes. */
export function runDiskFloorBytes(diskBytes: number): number {
  // Tests and small machines have such disks.
  if (diskBytes < 4 * GiB) return diskBytes / 10;
  return Math.min(Math.max(GiB, diskBytes / 20), 50 * GiB);
}

/** The share of its possible files that uploads leave to a file system. Empty files use them up, too. */
const FLOOR_FILES_SHARE = 0.05;

interface Claim {
  /** Counts bytes that are on the disk now. */
  came(bytes: number): void;
  end(): void;
}

export class Room {
  /** Bytes that are announced and not on the disk yet. */
  private coming = 0;

  /** The folders lie on one disk, but each may have a quota. */
  constructor(private readonly folders: readonly string[]) {}

  /** Rejects as a full disk does. */
  async claim(bytes: number): Promise<Claim> {
    const claim = this.counted(bytes);
    // The sum is read before the disk is asked: a claim that comes meanwhile counts this one.
    const { coming } = this;
    try {
      for (const folder of this.folders) await checkRoom(folder, coming);
      return claim;
    } catch (error) {
      claim.end();
      throw error;
    }
  }

  private counted(bytes: number): Claim {
    let left = bytes;
    this.coming += left;
    const came = (count: number) => {
      const counted = Math.min(count, left);
      left -= counted;
      this.coming -= counted;
    };
    return { came, end: () => came(left) };
  }
}

async function checkRoom(folder: string, coming: number): Promise<void> {
  const disk = await statfs(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  // A folder that does not exist yet has no bounds.
  if (!disk) return;
  const { blocks, bavail, bsize, files, ffree } = disk;
  const free = bavail * bsize;
  const floor = runDiskFloorBytes(blocks * bsize);
  if (free < coming + floor) {
    throw noRoom(`${folder}: ${free} bytes free, ${coming} announced, ${Math.ceil(floor)} to be left`);
  }
  // A file system without a fixed number of files reports 0.
  if (files > 0 && ffree < files * FLOOR_FILES_SHARE)
    throw noRoom(`${folder}: room for only ${ffree} of ${files} files`);
}

function noRoom(message: string): Error {
  return Object.assign(new Error(message), { code: "ENOSPC" });
}
