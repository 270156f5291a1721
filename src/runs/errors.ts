/** The failures of run storage: their table, in the order of the specification ("Robot runs"; contract section 7), and their messages. */
import { type Answers, Failure, row, table } from "../std/failure.ts";
import type { StoreDown } from "../store/store.ts";
import type { BlobsDown } from "./blob/blobs.ts";
import type { Refusal, RunBounds } from "./store/records.ts";

export const RUNS = table({
  run_not_found: row(404, { http: "The account has no completed run of this name; an unfinished one cannot be read." }),
  file_not_found: row(404, { http: "There is no file at this path; the manifest names those that there are." }),
  upload_not_found: row(404, {
    http: "There is no multipart upload with this `upload_id` for this file; it was aborted or has expired. Start another one.",
  }),
  upload_in_progress: row(409, {
    http: "Another unfinished upload owns the path, or the run is not ready to complete. Finish that upload or abort it; one that is being finished needs only time.",
  }),
  run_incomplete: row(409, {
    http: "A listed file is missing or differs in size, or a stored file is not listed, or parts of an upload have not come. Send what is missing, or correct the list.",
  }),
  run_completed: row(409, { http: "The run is complete: its files do not change any more. Use another name." }),
  too_many_uploads: row(429, { http: "The run already has 16 unfinished uploads; finish or abort one." }),
  storage_busy: row(503, { http: "Too many concurrent storage requests on the run; retry with backoff." }),
  length_required: row(411, { http: "An upload without `Content-Length`; send it, and no chunked body." }),
  request_too_large: row(413, {
    http: "The file or part is over 64 MiB, or the JSON body over 1 MiB. Send a larger file in parts.",
  }),
  run_too_large: row(413, {
    http: "The run would have more than 2 GiB or 2,000 files; divide it. Or the account would have more than 100,000 runs; delete some.",
  }),
  storage_quota_exceeded: row(413, {
    http: "Stored files, records and upload reservations would exceed the quota; delete runs. A staged upload is kept for a retry or an abort.",
  }),
  precondition_failed: row(412, {
    http: "`If-Match` or `If-None-Match` does not hold for the file at this path; nothing is kept.",
  }),
  invalid_range: row(416, {
    http: "`Range` cannot be served: the file has none of its bytes. `Content-Range` has the size.",
  }),
  checksum_mismatch: row(422, {
    http: "The body or the assembled file is not the SHA-256 sent; nothing is kept. Send it again.",
  }),
  invalid_request: row(422, { http: "A robot or run name, path, query or body does not match its format." }),
  storage_unavailable: row(503, { http: "The storage of runs is down; retry with backoff." }),
});

export const RUNS_ANSWERS: Answers = {
  tooLarge: RUNS.request_too_large,
  malformed: RUNS.invalid_request,
  unavailable: RUNS.storage_unavailable,
};

/** Records or bytes cannot be reached. The reason is for the log. */
export function unavailable({ reason, ...down }: BlobsDown | StoreDown): Failure {
  const full = "full" in down && down.full;
  const message = full
    ? "the storage of runs has no room left; what was complete is kept; retry later"
    : "the storage of runs cannot be reached right now; what was complete is kept; retry with backoff";
  return new Failure(RUNS.storage_unavailable, message, { retryAfterSeconds: full ? 60 : 2, detail: reason });
}

/** Nothing new may be stored. */
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
      return tooLarge(`the run would have more than ${bounds.runBytesMax} bytes; divide it into several runs`);
    case "run_files":
      return tooLarge(
        `the run would have more than ${bounds.runFilesMax} files; divide it, or pack small files into one`,
      );
    case "runs":
      return tooLarge(
        `the account would have more than ${bounds.accountRunsMax} runs, unfinished ones included; delete some`,
      );
    case "quota":
      return overQuota(bounds);
  }
}

function tooLarge(message: string): Failure {
  return new Failure(RUNS.run_too_large, message);
}

export function overQuota({ accountBytesMax }: RunBounds): Failure {
  return new Failure(
    RUNS.storage_quota_exceeded,
    `stored files, records and reservations would exceed the account's ${accountBytesMax} bytes; delete runs, or abort uploads`,
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

export function preconditionFailed(): Failure {
  return new Failure(
    RUNS.precondition_failed,
    "the file at this path is not what If-Match or If-None-Match asks for; another request has stored, replaced or deleted it",
  );
}

/** The answer to a write. */
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

/** `param` is the field at fault, if there is one. */
export function invalid(message: string, param?: string): Failure {
  return new Failure(RUNS.invalid_request, message, param === undefined ? {} : { param });
}
