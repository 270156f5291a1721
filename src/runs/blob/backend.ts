/**
 * The interface of the two stores of bytes: a folder and an S3 store. A blob is written once as a whole, under an id that is used
 * once, and never changes. Only the records (src/runs/store) say to which file it belongs.
 *
 * The functions run on the thread of the blobs (loop.ts). They reject when the disk or the store fails.
 */
import { createHash } from "node:crypto";

/** A body on the local disk that has arrived completely. Other processes do not use it. */
export interface Staged {
  readonly path: string;
  readonly size: number;
  /** 32 bytes. */
  readonly sha256: Uint8Array;
}

export interface Assembly {
  /** The id of the blob that it becomes. */
  readonly id: string;
  /** The backend's own name, which `begin` returned. */
  readonly token: string;
}

export interface PartTag {
  /** Parts are numbered from 1. */
  readonly part: number;
  /** The backend's name of its bytes. */
  readonly tag: string;
  readonly size: number;
}

export interface Joined {
  readonly size: number;
  readonly sha256: Uint8Array;
}

/** The numbers of parts whose bytes are not the tagged ones. */
export interface Changed {
  readonly changed: readonly number[];
}

/** The store has no such assembly: it has dropped the parts, or has made a blob of them. */
export interface Lost {
  readonly lost: true;
}

export interface BlobFacts {
  readonly id: string;
  readonly size: number;
  /** Unix seconds of the last change, by the clock of the store. */
  readonly at: number;
  /** Whether it is an assembly; its size then has no meaning. */
  readonly begun: boolean;
}

export interface Backend {
  /** Rejects with a text for the operator if blobs cannot be read and written. */
  check(): Promise<void>;
  /** The marker (../ownership.ts), which names the store of records that owns the blobs; empty if there is none. */
  marker(): Promise<string>;
  /** Makes `to`, which is used once, the marker if it still is `from`. The result is whether it is now. */
  mark(from: string, to: string): Promise<boolean>;
  /** Makes the staged bytes a durable blob. It may move the staged file; the caller removes what is left. */
  put(staged: Staged, id: string): Promise<void>;
  begin(id: string): Promise<string>;
  /** The tag of the part. A repeated part replaces the earlier one and has another tag. */
  putPart(staged: Staged, to: Assembly, part: number): Promise<string | Lost>;
  /** Removes the bytes of a replaced part, if the store still has them. */
  removePart(from: Assembly, tag: string): Promise<void>;
  /** Makes the parts a durable blob, and returns the SHA-256 of what is stored. It can be repeated after a lost answer. */
  join(from: Assembly, parts: readonly PartTag[]): Promise<Joined | Changed | Lost>;
  /** Removes the parts. It can be repeated. */
  abandon(from: Assembly): Promise<void>;
  /** Bytes [from, to) in pieces of at most 256 KiB; undefined if there is no such blob. */
  read(id: string, from: number, to: number): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** A missing blob counts as removed. */
  remove(ids: readonly string[]): Promise<void>;
  /** One page of the blobs and assemblies, in any order. */
  list(after: string | undefined): Promise<{ readonly blobs: readonly BlobFacts[]; readonly next: string | undefined }>;
}

/** The SHA-256 of bytes that `read` returned. */
export async function digestOf(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const hash = createHash("sha256");
  for await (const piece of pieces) hash.update(piece);
  return new Uint8Array(hash.digest());
}
