/**
 * What the store keeps of the runs of robots. The bytes of files are blobs (src/runs/blob): every blob has a row before it has a
 * byte, and loses its row after it has lost its bytes. So the record never names what is not there, and nothing lies anywhere that
 * no row names:
 *
 * - to store: a row of `run_blobs` with its reservation, then the blob, then the file's row in its place, in one step;
 * - to delete: the file's row becomes one of `run_blobs` in one step, then the blob goes, then that row.
 *
 * Sizes are bytes. Writes that change what a total counts lock the account's totals first, so that all of one account come one after
 * another. Those of the sweep and of the meter, and an assembly's name, need no order.
 */

/** The names of a run in its account. */
export interface RunKey {
  readonly accountId: string;
  readonly robot: string;
  readonly run: string;
}

export interface FileKey extends RunKey {
  readonly path: string;
}

/** What is allowed; the numbers of limits.ts, given by the caller. */
export interface RunBounds {
  readonly runBytesMax: number;
  readonly runFilesMax: number;
  readonly runUploadsMax: number;
  readonly accountBytesMax: number;
}

/** Why nothing new may come. */
export type Refusal =
  | "run_completed"
  /** An unfinished upload owns the path. */
  | "path_taken"
  | "too_many_uploads"
  | "run_bytes"
  | "run_files"
  | "quota";

/** A file whose bytes are about to come. */
export interface NewFile extends FileKey, RunBounds {
  /** Id of the run, if this is its first file. */
  readonly runId: string;
  readonly blobId: string;
  readonly size: number;
  /** The process that receives it. */
  readonly owner: string;
  /** Seen time. */
  readonly at: number;
}

/** A multipart upload. */
export interface NewUpload extends Omit<NewFile, "owner"> {
  readonly uploadId: string;
  readonly partSize: number;
  /** SHA-256 of the whole file, 32 bytes; undefined: the client has not said. */
  readonly sha256: Uint8Array | undefined;
  readonly expiresAt: number;
}

export interface StoredFile {
  readonly blobId: string;
  readonly size: number;
  /** 32 bytes. */
  readonly sha256: Uint8Array;
  readonly storedAt: number;
}

export interface Stored {
  /** Whether there was a file at this path before. */
  readonly replaced: boolean;
}

export interface StoredPart {
  readonly part: number;
  readonly tag: string;
  readonly size: number;
  readonly sha256: Uint8Array;
}

/**
 * - `open`: parts come.
 * - `joining`: a process puts the parts together.
 * - `done`: the file is stored; the row is the answer to who asks again.
 */
type UploadState = "open" | "joining" | "done";

export interface StoredUpload {
  readonly id: string;
  readonly accountId: string;
  readonly runId: string;
  readonly path: string;
  readonly blobId: string;
  /** What the backend calls the assembly; undefined before the first part. */
  readonly token: string | undefined;
  readonly size: number;
  readonly partSize: number;
  readonly sha256: Uint8Array | undefined;
  readonly state: UploadState;
  readonly owner: string | undefined;
  readonly attempt: string | undefined;
  readonly expiresAt: number;
}

export interface ListedFile {
  readonly path: string;
  readonly size: number;
  /** Hexadecimal. */
  readonly sha256?: string;
  /** Media type in the manifest. */
  readonly contentType: string;
}

/** Why a run cannot be completed as listed. */
export interface Incomplete {
  readonly why: "missing" | "size" | "digest" | "unlisted";
  readonly path: string;
  /** Size or digest of the stored file, where it differs. */
  readonly stored?: string;
}

export type Completion =
  | { readonly manifest: string }
  | { readonly incomplete: Incomplete }
  /** An unfinished upload owns this path. */
  | { readonly unfinished: string }
  | "run_completed";

export interface CompletedRun {
  readonly id: string;
  readonly robot: string;
  readonly run: string;
  readonly size: number;
  readonly files: number;
  readonly completedAt: number;
}

/** Bytes, runs and requests of one account. */
export interface RunUsage {
  readonly stored: number;
  readonly reserved: number;
  readonly completed: number;
  readonly uploaded: number;
  readonly downloaded: number;
  readonly requests: number;
}

/** Bytes that nobody reads any more, or that did not become a file. */
export interface GoneBlob {
  readonly id: string;
  /** It is, or was, an assembly that the backend calls so. */
  readonly token: string | undefined;
}

/** A file of any run, for the check of its blob. */
export interface RecordedFile {
  readonly blobId: string;
  readonly path: string;
  readonly size: number;
  /** 32 bytes. */
  readonly sha256: Uint8Array;
  /** Undefined like its names: the run is not there, which must not be. */
  readonly accountId: string | undefined;
  readonly robot: string | undefined;
  readonly run: string | undefined;
}

/** What is on its way and belongs to a process. */
export interface Coming {
  readonly id: string;
  readonly accountId: string;
}

/** An upload that a request puts together. */
export interface ComingJoin extends Coming {
  readonly attempt: string;
}

/** What was counted of one account in one month. */
export interface Metered {
  readonly accountId: string;
  /** YYYYMM, UTC. */
  readonly month: number;
  readonly downloaded: number;
  readonly requests: number;
}
