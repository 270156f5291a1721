/** Bytes that arrive, in a folder of this process: a file each, with its digest computed on the way. Emptied at the start. */
import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Staged } from "./backend.ts";
import type { Claim, Room } from "./room.ts";

export class Staging {
  private count = 0;

  constructor(
    private readonly folder: string,
    private readonly room: Room,
  ) {}

  /** What a process before this one left is gone. */
  async empty(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
  }

  /** A file of as many bytes, if the disk has room for it. */
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

  /** The bytes are a blob now, or nobody needs them. */
  async remove({ path }: Pick<Staged, "path">): Promise<void> {
    await rm(path, { force: true });
  }
}

/** One file that arrives. */
export class Arriving {
  private readonly hash = createHash("sha256");
  private size = 0;
  private readonly writing = new Set<Promise<void>>();
  /** Why nothing more is written. */
  error: unknown;

  constructor(
    readonly path: string,
    private readonly file: FileHandle,
    private readonly claim: Claim,
  ) {}

  /** Resolves when the bytes may be overwritten, also after a failure, which `end` tells. */
  add(bytes: Uint8Array): Promise<void> {
    if (this.error !== undefined) return Promise.resolve();
    const at = this.size;
    this.size += bytes.length;
    const write = this.write(bytes, at).catch((error: unknown) => {
      this.error ??= error ?? new Error("the write failed");
    });
    this.writing.add(write);
    // The disk writes meanwhile.
    this.hash.update(bytes);
    return write.then(() => {
      this.writing.delete(write);
    });
  }

  private async write(bytes: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.file.write(bytes, done, bytes.length - done, at + done);
      done += bytesWritten;
      this.claim.came(bytesWritten);
    }
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
