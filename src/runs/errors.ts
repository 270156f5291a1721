/** Failures of the storage of robot runs (specification, "Robot runs"; contract section 7), in the specification's order. */
import { type Answers, row, table } from "../std/failure.ts";

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
  run_too_large: row(413, { http: "The run would have more than 2 GiB or 2,000 files; divide it." }),
  storage_quota_exceeded: row(413, {
    http: "Stored files and upload reservations would exceed the quota; delete runs. A staged upload is kept for a retry or an abort.",
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
