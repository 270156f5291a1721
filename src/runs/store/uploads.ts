/** Multipart uploads: begun, part by part, then put together into the file. */
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, listed, rows, type Steps } from "../../store/steps.ts";
import { committedBefore, type FilePlacement, forgetDone, goneBlob, placeFile, type Said } from "./files.ts";
import type { NewUpload, Refusal, Stored, StoredPart, StoredUpload } from "./records.ts";
import { changeAccount, changeRun, countUpload, forgetEmptyRun, lockAccount, makeRoom, runById } from "./totals.ts";

const stored = recordOf<StoredUpload>("size", "partSize", "expiresAt");
const part = recordOf<StoredPart>("part", "size");

const UPLOAD =
  "SELECT id, account_id, run_id, path, blob_id, token, size, part_size, sha256, state, owner, attempt, expires_at FROM run_uploads";

export function* uploadById(accountId: string, uploadId: string): Steps<StoredUpload | undefined> {
  const row = yield* first<Row>(`${UPLOAD} WHERE id = $1 AND account_id = $2`, uploadId, accountId);
  return row && stored(row);
}

export function* partsOf(uploadId: string): Steps<readonly StoredPart[]> {
  const found = yield* rows<Row>(
    "SELECT part, tag, size, sha256 FROM run_parts WHERE upload_id = $1 ORDER BY part",
    uploadId,
  );
  return found.map(part);
}

/** The unfinished uploads of this path, or of all. */
export function* unfinishedUploads(runId: string, path?: string): Steps<readonly StoredUpload[]> {
  const text = `${UPLOAD} WHERE run_id = $runId ${path === undefined ? "" : "AND path = $path"} AND state <> 'done'`;
  return (yield* rows<Row>(text, { runId, path })).map(stored);
}

/** The name of the row of an upload's parts that are to be removed; the blob that they became has the same id without it. */
function partsOfBlob(blobId: string): string {
  return `parts-${blobId}`;
}

/** Reserves room for a file that comes in parts, and its path. */
export function* uploadBegin(upload: NewUpload): Steps<"begun" | Refusal> {
  const { accountId, uploadId, path, blobId, size, partSize, sha256, expiresAt, runUploadsMax } = upload;
  const totals = yield* lockAccount(accountId);
  if (yield* uploadById(accountId, uploadId)) return "begun";
  // It was begun, and has ended since.
  if (yield* first("SELECT id FROM run_blobs WHERE id = $1", partsOfBlob(blobId))) return "begun";
  const room = yield* makeRoom(upload, totals);
  if (typeof room === "string") {
    // The specification names the number of uploads before the room for them.
    const full = room !== "run_completed" && room !== "path_taken" && (yield* isFull(upload));
    return full ? "too_many_uploads" : room;
  }
  const { run } = room;
  if (run.uploads >= BigInt(runUploadsMax)) return "too_many_uploads";
  yield* changes(
    `INSERT INTO run_uploads (id, account_id, run_id, path, blob_id, size, part_size, sha256, state, expires_at)
     VALUES ($uploadId, $accountId, $runId, $path, $blobId, $size, $partSize, $sha256, 'open', $expiresAt)`,
    { uploadId, accountId, runId: run.id, path, blobId, size, partSize, sha256, expiresAt },
  );
  yield* changeRun(accountId, run.id, { reserved: size, coming: 1, uploads: 1 });
  return "begun";
}

function* isFull({ accountId, robot, run, runUploadsMax }: NewUpload): Steps<boolean> {
  const text = "SELECT uploads FROM robot_runs WHERE account_id = $1 AND robot = $2 AND run = $3";
  const found = yield* first<{ uploads: bigint }>(text, accountId, robot, run);
  return found !== undefined && found.uploads >= BigInt(runUploadsMax);
}

interface OfUpload {
  readonly accountId: string;
  readonly uploadId: string;
}

/** The first token counts, and is the outcome for every caller. */
export function* uploadToken({ accountId, uploadId, token }: OfUpload & { token: string }): Steps<string | "gone"> {
  yield* changes(
    "UPDATE run_uploads SET token = $3 WHERE id = $1 AND account_id = $2 AND token IS NULL",
    uploadId,
    accountId,
    token,
  );
  return (yield* uploadById(accountId, uploadId))?.token ?? "gone";
}

interface NewPart extends OfUpload, StoredPart {
  readonly month: number;
}

/** `replaced`: what had the same number. */
type PartStored = { readonly replaced: string | undefined };

/** The bytes of the part are there. In the place of those with the same number. */
export function* partCommit({ accountId, uploadId, month, ...given }: NewPart): Steps<PartStored | "gone" | "joining"> {
  yield* lockAccount(accountId);
  const upload = yield* uploadById(accountId, uploadId);
  if (!upload) return "gone";
  const known = yield* first<{ tag: string; replaced: string | null }>(
    "SELECT tag, replaced FROM run_parts WHERE upload_id = $1 AND part = $2",
    uploadId,
    given.part,
  );
  if (known?.tag === given.tag) return { replaced: known.replaced ?? undefined };
  if (upload.state !== "open") return upload.state === "done" ? "gone" : "joining";
  yield* changes(
    `INSERT INTO run_parts (upload_id, part, tag, size, sha256, replaced)
     VALUES ($uploadId, $part, $tag, $size, $sha256, $replaced)
     ON CONFLICT (upload_id, part) DO UPDATE SET tag = excluded.tag, size = excluded.size, sha256 = excluded.sha256,
       replaced = excluded.replaced`,
    { uploadId, ...given, replaced: known?.tag },
  );
  yield* countUpload(accountId, month, given.size);
  return { replaced: known?.tag };
}

interface Joining extends OfUpload {
  readonly owner: string;
  /** Id of the request, so that a repeat has the same outcome. */
  readonly attempt: string;
  readonly accountBytesMax: number;
  readonly at: number;
}

type JoinBegun =
  | { readonly upload: StoredUpload; readonly parts: readonly StoredPart[] }
  | { readonly done: StoredUpload }
  /** Another process, or another request, puts it together. */
  | "joining"
  | "missing"
  | "quota"
  | "gone";

/** From now on no part changes. The copy needs its room beside the parts until these are gone. */
export function* joinBegin({ accountId, uploadId, owner, attempt, accountBytesMax, at }: Joining): Steps<JoinBegun> {
  const totals = yield* lockAccount(accountId);
  const upload = yield* uploadById(accountId, uploadId);
  if (!upload) return "gone";
  if (upload.state === "done") return { done: upload };
  const parts = yield* partsOf(uploadId);
  if (upload.state === "joining") return upload.attempt === attempt ? { upload, parts } : "joining";
  if (parts.length < Math.ceil(upload.size / upload.partSize)) return "missing";
  if (totals.stored + totals.reserved + BigInt(upload.size) > BigInt(accountBytesMax)) return "quota";
  yield* changes(
    "UPDATE run_uploads SET state = 'joining', owner = $2, attempt = $3, joining_at = $4 WHERE id = $1",
    uploadId,
    owner,
    attempt,
    at,
  );
  yield* changeAccount(accountId, { reserved: upload.size });
  return { upload: { ...upload, state: "joining", owner, attempt }, parts };
}

interface OfJoin extends OfUpload {
  /** The request that joins; another one may have begun since. */
  readonly attempt: string;
}

/** The parts are not put together; those that are named must come again. */
export function* joinEnd(of: OfJoin & { readonly lost: readonly number[] }): Steps<"ended"> {
  const { accountId, uploadId, attempt, lost } = of;
  yield* lockAccount(accountId);
  const upload = yield* uploadById(accountId, uploadId);
  if (upload?.state !== "joining" || upload.attempt !== attempt) return "ended";
  yield* changes("UPDATE run_uploads SET state = 'open', owner = NULL, attempt = NULL WHERE id = $1", uploadId);
  yield* changeAccount(accountId, { reserved: -upload.size });
  yield* dropParts(uploadId, lost);
  return "ended";
}

/** Parts whose bytes are not those that the client meant must come again. `kept`: they are joined, or the upload has ended. */
export function* partsDrop(of: OfUpload & { readonly lost: readonly number[] }): Steps<"dropped" | "kept"> {
  const { accountId, uploadId, lost } = of;
  yield* lockAccount(accountId);
  if ((yield* uploadById(accountId, uploadId))?.state !== "open") return "kept";
  yield* dropParts(uploadId, lost);
  return "dropped";
}

function* dropParts(uploadId: string, lost: readonly number[]): Steps<void> {
  const text = `DELETE FROM run_parts WHERE upload_id = $1 AND CAST(part AS TEXT) IN ${listed(2)}`;
  yield* changes(text, uploadId, JSON.stringify(lost.map(String)));
}

/**
 * The whole blob is the file at its path from now on. The answer stays for who asks again, and so does what is known of the parts:
 * who lost the answer resumes, and finds that nothing is missing.
 */
export function* joinCommit(
  of: OfJoin & Pick<FilePlacement, "sha256" | "at" | "storedAt"> & { readonly expiresAt: number },
): Steps<Stored | "gone"> {
  const { accountId, uploadId, attempt, sha256, at, storedAt, expiresAt } = of;
  yield* lockAccount(accountId);
  const before = yield* joinedBefore(accountId, attempt);
  if (before) return before;
  const upload = yield* uploadById(accountId, uploadId);
  if (!upload) return "gone";
  const { blobId, runId, path, size, token } = upload;
  if (upload.state === "done") {
    const other = yield* committedBefore(blobId);
    return typeof other === "object" ? other : { replaced: true };
  }
  if (upload.state !== "joining" || upload.attempt !== attempt) return "gone";
  const run = yield* runById(runId);
  if (!run) return "gone";
  yield* changeAccount(accountId, { reserved: -size });
  yield* changeRun(accountId, runId, { reserved: -size, coming: -1, uploads: -1 });
  const placed = yield* placeFile({ accountId, runId, path, blobId, size, sha256, at, storedAt });
  yield* forgetDone(runId, path);
  yield* changes(
    "UPDATE run_uploads SET state = 'done', owner = NULL, attempt = NULL, sha256 = $2, expires_at = $3 WHERE id = $1",
    uploadId,
    sha256,
    expiresAt,
  );
  const said = placed.replaced ? "replaced" : "new";
  yield* goneBlob({
    id: partsOfBlob(blobId),
    accountId,
    runId,
    path,
    size,
    at,
    token: token ?? "",
    cause: attempt,
    said,
  });
  return placed;
}

/** The upload's own row may be gone, with the run or for a later upload. */
function* joinedBefore(accountId: string, attempt: string): Steps<Stored | undefined> {
  const text = "SELECT said FROM run_blobs WHERE cause = $1 AND account_id = $2";
  const parts = yield* first<{ said: Said }>(text, attempt, accountId);
  return parts && { replaced: parts.said === "replaced" };
}

interface Drop extends OfUpload {
  readonly at: number;
  /** The request that joins it, which may drop it. */
  readonly attempt?: string;
}

/** Gives the room and the path back; the parts are bytes to be removed. `unknown`: there is none that is unfinished. */
export function* uploadDrop({ accountId, uploadId, at, attempt }: Drop): Steps<"dropped" | "unknown" | "joining"> {
  yield* lockAccount(accountId);
  if (yield* first("SELECT id FROM run_blobs WHERE cause = $1 AND account_id = $2", uploadId, accountId))
    return "dropped";
  const upload = yield* uploadById(accountId, uploadId);
  if (!upload || upload.state === "done") return "unknown";
  if (upload.state === "joining" && upload.attempt !== attempt) return "joining";
  yield* forgetUpload(upload, at);
  yield* changeRun(accountId, upload.runId, { reserved: -upload.size, coming: -1, uploads: -1 });
  yield* forgetEmptyRun(upload.runId);
  return "dropped";
}

/** The rows of an unfinished one, what has come of it, and the copy's reservation. */
export function* forgetUpload(upload: StoredUpload, at: number): Steps<void> {
  const { id, accountId, runId, path, blobId, size, token, state } = upload;
  yield* changes("DELETE FROM run_parts WHERE upload_id = $1", id);
  yield* changes("DELETE FROM run_uploads WHERE id = $1", id);
  if (state === "joining") yield* changeAccount(accountId, { reserved: -size });
  yield* goneBlob({ id: partsOfBlob(blobId), accountId, runId, path, size, at, token: token ?? "", cause: id });
  // What a join that has not ended may have made of them.
  yield* goneBlob({ id: blobId, accountId, runId, path, size, at });
}
