/**
 * Where the bytes of runs' files lie: a folder or an S3 store. A blob is written once, whole, under an id of its own, and never
 * changes; which file it belongs to says the record in the store alone.
 *
 * All of it runs on the thread of the blobs (loop.ts), never on the event loop of the requests. Functions reject when the world
 * fails; the thread makes a value of that.
 */

/** Bytes on the local disk, received whole: private to this process. */
export interface Staged {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** 32 bytes. */
  readonly sha256: Uint8Array;
}

/** A blob that is put together from parts. */
export interface Assembly {
  /** Of the blob that it becomes. */
  readonly id: string;
  /** What `begin` said. */
  readonly token: string;
}

/** A part as it was stored: number from 1, what names its bytes, bytes. */
export interface PartTag {
  readonly part: number;
  readonly tag: string;
  readonly size: number;
}

export interface Joined {
  readonly size: number;
  readonly sha256: Uint8Array;
}

/** Parts whose bytes are not the tagged ones any more. */
export interface Changed {
  readonly changed: readonly number[];
}

/** The store has no such assembly: it dropped it with all its parts, or made a blob of it. */
export interface Lost {
  readonly lost: true;
}

export interface BlobFacts {
  readonly id: string;
  readonly size: number;
  /** Unix seconds of the last change, by the clock of the store. */
  readonly at: number;
  /** An assembly: its size means nothing. */
  readonly begun: boolean;
}

export interface Backend {
  /** Rejects, with a text for the operator, if blobs cannot be read and written. */
  check(): Promise<void>;
  /** The id of the store of records to which the blobs belong. Where nothing says it, it is `id` from now on; undefined only asks. */
  identity(id: string | undefined): Promise<string | undefined>;
  /** Makes the staged bytes a blob, durable when it resolves. The staged file may be moved; what is left is the caller's. */
  put(staged: Staged, id: string): Promise<void>;
  begin(id: string): Promise<string>;
  /** The tag of the part. The same part again replaces it, under another tag. */
  putPart(staged: Staged, to: Assembly, part: number): Promise<string | Lost>;
  /** Removes the bytes of a part that nobody asks for. A store whose parts replace each other by their number has nothing to do. */
  removePart?(from: Assembly, tag: string): Promise<void>;
  /**
   * The blob, whole and durable, with the SHA-256 of what is stored. Can be repeated after an answer that was lost. `Lost`: there is
   * no such blob either.
   */
  join(from: Assembly, parts: readonly PartTag[]): Promise<Joined | Changed | Lost>;
  /** Removes the parts. Can be repeated. */
  abandon(from: Assembly): Promise<void>;
  /** Bytes [from, to) in pieces of at most 256 KiB; undefined: there is no such blob. */
  read(id: string, from: number, to: number): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** One that is not there counts as removed. */
  remove(ids: readonly string[]): Promise<void>;
  /** Blobs and begun assemblies, a page at a time, in some order. */
  list(after: string | undefined): Promise<{ readonly blobs: readonly BlobFacts[]; readonly next: string | undefined }>;
}
