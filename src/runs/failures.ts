/** What clients are told when storage cannot do what they ask. */
import { Failure } from "../std/failure.ts";
import type { StoreDown } from "../store/store.ts";
import type { BlobsDown } from "./blob/blobs.ts";
import { RUNS } from "./errors.ts";
import type { Refusal, RunBounds } from "./store/records.ts";

/** The record or the bytes cannot be reached; `reason` is for the log. */
export function unavailable({ reason, ...down }: BlobsDown | StoreDown): Failure {
  const full = "full" in down && down.full;
  const message = full
    ? "the storage of runs has no room left; what was complete is kept; retry later"
    : "the storage of runs cannot be reached right now; what was complete is kept; retry with backoff";
  return new Failure(RUNS.storage_unavailable, message, { retryAfterSeconds: full ? 60 : 2, detail: reason });
}

/** Why nothing new may come. */
export function refused(refusal: Refusal, bounds: RunBounds): Failure {
  switch (refusal) {
    case "run_completed":
      return completed();
    case "path_taken":
      return new Failure(
        RUNS.upload_in_progress,
        "an unfinished multipart upload owns this path; finish it or abort it (GET …/uploads/{path} names it)",
      );
    case "too_many_uploads":
      return new Failure(
        RUNS.too_many_uploads,
        `the run already has ${bounds.runUploadsMax} unfinished uploads; finish or abort one`,
      );
    case "run_bytes":
      return new Failure(
        RUNS.run_too_large,
        `the run would have more than ${bounds.runBytesMax} bytes; divide it into several runs`,
      );
    case "run_files":
      return new Failure(
        RUNS.run_too_large,
        `the run would have more than ${bounds.runFilesMax} files; divide it, or pack small files into one`,
      );
    case "quota":
      return overQuota(bounds);
  }
}

export function overQuota({ accountBytesMax }: RunBounds): Failure {
  return new Failure(
    RUNS.storage_quota_exceeded,
    `stored files and reservations would exceed the account's ${accountBytesMax} bytes; delete runs, or abort uploads`,
  );
}

export function completed(): Failure {
  return new Failure(
    RUNS.run_completed,
    "the run is complete, and its files do not change any more; store under another run name, or delete this run first",
  );
}

export function runNotFound(): Failure {
  return new Failure(
    RUNS.run_not_found,
    "the account has no completed run of this name; an unfinished one is not readable before POST …/complete",
  );
}

/** Of a write. */
export function runGone(): Failure {
  return new Failure(RUNS.run_not_found, "the account has no run of this name; was it deleted meanwhile?");
}

export function fileNotFound(): Failure {
  return new Failure(RUNS.file_not_found, "the run has no file at this path; its manifest lists those that it has");
}

export function uploadNotFound(): Failure {
  return new Failure(
    RUNS.upload_not_found,
    "this file has no multipart upload with this upload_id; it is finished, was aborted, has expired, or was never started",
  );
}

export function mismatch(what: string, sent: Uint8Array, found: Uint8Array): Failure {
  return new Failure(
    RUNS.checksum_mismatch,
    `the SHA-256 of ${what} is ${found.toHex()}, but ${sent.toHex()} was sent; nothing of it is kept; send it again`,
  );
}
