/** The rows of multipart uploads and of their parts: found and forgotten. */
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, rows, type Steps } from "../../store/steps.ts";
import { goneBlob } from "./files.ts";
import type { StoredPart, StoredUpload } from "./records.ts";
import { changeAccount } from "./totals.ts";

const uploadOf = recordOf<StoredUpload>("size", "partSize", "expiresAt");
const partOf = recordOf<StoredPart>("part", "size");

const UPLOAD =
  "SELECT id, account_id, run_id, path, blob_id, token, size, part_size, sha256, state, owner, attempt, expires_at FROM run_uploads";

export function* uploadById(accountId: string, uploadId: string): Steps<StoredUpload | undefined> {
  const row = yield* first<Row>(`${UPLOAD} WHERE id = $1 AND account_id = $2`, uploadId, accountId);
  return row && uploadOf(row);
}

export function* partsOf(uploadId: string): Steps<readonly StoredPart[]> {
  const found = yield* rows<Row>(
    "SELECT part, tag, size, sha256 FROM run_parts WHERE upload_id = $1 ORDER BY part",
    uploadId,
  );
  return found.map(partOf);
}

export function* unfinishedUploads(runId: string, path?: string): Steps<readonly StoredUpload[]> {
  const text = `${UPLOAD} WHERE run_id = $runId ${path === undefined ? "" : "AND path = $path"} AND state <> 'done'`;
  return (yield* rows<Row>(text, { runId, path })).map(uploadOf);
}

/** The prefix of the row of an upload's parts that are to be removed; the rest is the id of the blob that they became. */
export const PARTS = "parts-";

export function partsOfBlob(blobId: string): string {
  return PARTS + blobId;
}

/** Forgets the rows of an unfinished upload, and ends the reservation of the copy. */
export function* forgetUpload(upload: StoredUpload, at: number): Steps<void> {
  const { id, accountId, runId, path, blobId, size, token, state } = upload;
  yield* changes("DELETE FROM run_parts WHERE upload_id = $1", id);
  yield* changes("DELETE FROM run_uploads WHERE id = $1", id);
  if (state === "joining") yield* changeAccount(accountId, { reserved: -size });
  yield* goneBlob({ id: partsOfBlob(blobId), accountId, runId, path, size, at, token: token ?? "", cause: id });
  // A join that has not ended may have made this blob.
  yield* goneBlob({ id: blobId, accountId, runId, path, size, at });
}
