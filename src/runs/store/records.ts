/**
 * What the store keeps of the runs of robots. The bytes of files are blobs (src/runs/blob). A blob has a row before it has a byte, and
 * loses its row after its bytes. So no record names missing bytes, and no bytes lie anywhere without a row:
 *
 * - Storing: a row of `run_blobs` with its reservation, then the blob, then the row of the file instead of that row, in one step.
 * - Deleting: the row of the file becomes one of `run_blobs` in one step, then the blob is removed, then that row.
 *
 * Sizes are bytes. A write that changes what a total counts locks the totals of the account first, so the writes of an account run one
 * after another. The writes of the sweep and of the meter, and the token of an assembly, need no order.
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

export interface UploadKey extends FileKey {
  readonly uploadId: string;
}

/** The limits of runs and accounts, from limits.ts. */
export interface RunBounds {
  readonly runBytesMax: number;
  readonly runFilesMax: number;
  readonly runUploadsMax: number;
  readonly accountBytesMax: number;
  readonly accountRunsMax: number;
}

/** The reason why nothing new may be stored. */
export type Refusal =
  | "run_completed"
  /** An unfinished upload owns the path. */
  | "path_taken"
  | "too_many_uploads"
  | "run_bytes"
  | "run_files"
  | "runs"
  | "quota";

/** ETags as SHA-256 in hexadecimal; "any" is that of any file. */
export type Tags = "any" | readonly string[];

/** What a request demands of the file at its path before it replaces it. */
export interface Precondition {
  /** The file is there, and has one of these. */
  readonly is?: Tags | undefined;
  /** The file is not there, or has none of these. */
  readonly isNot?: Tags | undefined;
}

export interface NewFile extends FileKey, RunBounds {
  readonly precondition?: Precondition;
  /** The id of the run, if this is its first file. */
  readonly runId: string;
  readonly blobId: string;
  readonly size: number;
  /** The process that receives it. */
  readonly owner: string;
  /** Seen time. */
  readonly at: number;
}

export interface NewUpload extends Omit<NewFile, "owner" | "precondition"> {
  readonly uploadId: string;
  readonly partSize: number;
  /** The SHA-256 of the whole file, if the client states it. */
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
 * - `joining`: a process joins the parts.
 * - `done`: the file is stored; the row is the answer to a repeated request.
 */
type UploadState = "open" | "joining" | "done";

export interface StoredUpload {
  readonly id: string;
  readonly accountId: string;
  readonly runId: string;
  readonly path: string;
  readonly blobId: string;
  /** The backend's name of the assembly; undefined before the first part. */
  readonly token: string | undefined;
  readonly size: number;
  readonly partSize: number;
  readonly sha256: Uint8Array | undefined;
  readonly state: UploadState;
  readonly owner: string | undefined;
  readonly attempt: string | undefined;
  readonly expiresAt: number;
}

export interface UploadWithParts {
  readonly upload: StoredUpload;
  readonly parts: readonly StoredPart[];
}

export interface ListedFile {
  readonly path: string;
  readonly size: number;
  /** Hexadecimal. */
  readonly sha256?: string;
  /** The media type in the manifest. */
  readonly contentType: string;
}

/** The reason why a run cannot be completed as listed. */
export interface Incomplete {
  readonly why: "missing" | "size" | "digest" | "unlisted";
  readonly path: string;
  /** The size or digest of the stored file, if it differs. */
  readonly stored?: string;
}

export interface CompletedRun {
  readonly id: string;
  readonly robot: string;
  readonly run: string;
  readonly size: number;
  readonly files: number;
  readonly completedAt: number;
}

export interface RunUsage {
  readonly stored: number;
  readonly reserved: number;
  readonly completed: number;
  readonly uploaded: number;
  readonly downloaded: number;
  readonly requests: number;
}

/** Bytes that nothing reads any more, or that did not become a file. */
export interface GoneBlob {
  readonly id: string;
  /** The backend's name of the assembly, if it is or was one. */
  readonly token: string | undefined;
}

/** A file of any run, for the check of its blob. */
export interface RecordedFile {
  readonly blobId: string;
  readonly path: string;
  readonly size: number;
  /** 32 bytes. */
  readonly sha256: Uint8Array;
  /** The account and the names are undefined if the run is missing, which is an error. */
  readonly accountId: string | undefined;
  readonly robot: string | undefined;
  readonly run: string | undefined;
}

/** A file or an upload that is not finished. */
export interface Unfinished {
  readonly id: string;
  readonly accountId: string;
  /** The request that joins the upload. */
  readonly attempt?: string;
}

export interface Metered {
  readonly accountId: string;
  /** YYYYMM, UTC. */
  readonly month: number;
  readonly downloaded: number;
  readonly requests: number;
}
