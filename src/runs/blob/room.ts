/**
 * Room on the disk for what arrives. The database writes to the same disk: if uploads filled it, no chunk could be settled, no run be
 * deleted, and the next start would fail. So a body that would leave less than the floor is refused before its first byte.
 */
import { statfs } from "node:fs/promises";

const GiB = 2 ** 30;

/**
 * What uploads leave free: 5 % of the file system, from 1 to 50 GiB, which the database and its log fill in days, not in minutes. Of one
 * below 4 GiB, as tests and small machines have, 10 %.
 */
export function runDiskFloorBytes(diskBytes: number): number {
  return diskBytes < 4 * GiB ? diskBytes / 10 : Math.min(Math.max(GiB, diskBytes / 20), 50 * GiB);
}

/** Of the files that a file system can have, uploads leave this share: files without bytes fill it, too. */
const FLOOR_FILES_SHARE = 0.05;

/** Bytes that were announced. */
export interface Claim {
  /** They are on the disk now. */
  came(bytes: number): void;
  /** No more will come. */
  end(): void;
}

export class Room {
  /** Announced, and not on the disk yet. */
  private coming = 0;

  /** On one disk, but each may have a quota of its own. */
  constructor(private readonly folders: readonly string[]) {}

  /** Rejects as a full disk does. */
  async claim(bytes: number): Promise<Claim> {
    const claim = this.counted(bytes);
    // Before the disk is asked: what another one claims meanwhile counts this one.
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
  // One that is not there has no bounds of its own.
  if (!disk) return;
  const { blocks, bavail, bsize, files, ffree } = disk;
  const free = bavail * bsize;
  const floor = runDiskFloorBytes(blocks * bsize);
  if (free < coming + floor) {
    throw noRoom(`${folder}: ${free} bytes free, ${coming} announced, ${Math.ceil(floor)} to be left`);
  }
  // A file system without a fixed number of files says 0.
  if (files > 0 && ffree < files * FLOOR_FILES_SHARE)
    throw noRoom(`${folder}: room for only ${ffree} of ${files} files`);
}

function noRoom(message: string): Error {
  return Object.assign(new Error(message), { code: "ENOSPC" });
}
