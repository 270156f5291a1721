/** Multipart uploads: begun, sent part by part, then joined to the file. */
import { changes, first, listed, type Steps } from "../../store/steps.ts";
import { causedBefore, committedBefore, type FileRecord, forgetDone, goneBlob, setFile } from "./files.ts";
import type { NewUpload, Refusal, Stored, StoredPart, StoredUpload, UploadWithParts } from "./records.ts";
import {
  changeAccount,
  changeRun,
  countUpload,
  forgetEmptyRun,
  lockAccount,
  makeRoom,
  overAccount,
  runById,
} from "./totals.ts";
import { forgetUpload, partsOf, partsOfBlob, uploadById } from "./upload-rows.ts";

/** Reserves the path and the bytes of a file that comes in parts. */
export function* uploadBegin(upload: NewUpload): Steps<"begun" | Refusal> {
  const { accountId, uploadId, path, blobId, size, partSize, sha256, expiresAt, runUploadsMax } = upload;
  const totals = yield* lockAccount(accountId);
  if (yield* uploadById(accountId, uploadId)) return "begun";
  // It may have been begun and have ended since.
  if (yield* first("SELECT id FROM run_blobs WHERE id = $1", partsOfBlob(blobId))) return "begun";
  const room = yield* makeRoom(upload, totals, runUploadsMax);
  if (typeof room === "string") return room;
  const { runId } = room;
  yield* changes(
    `INSERT INTO run_uploads (id, account_id, run_id, path, blob_id, size, part_size, sha256, state, expires_at)
     VALUES ($uploadId, $accountId, $runId, $path, $blobId, $size, $partSize, $sha256, 'open', $expiresAt)`,
    { uploadId, accountId, runId, path, blobId, size, partSize, sha256, expiresAt },
  );
  yield* changeRun(accountId, runId, { reserved: size, coming: 1, uploads: 1 });
  return "begun";
}

interface OfUpload {
  readonly accountId: string;
  readonly uploadId: string;
}

/** The upload, when no other write of its account runs. */
function* lockedUpload({ accountId, uploadId }: OfUpload): Steps<StoredUpload | undefined> {
  yield* lockAccount(accountId);
  return yield* uploadById(accountId, uploadId);
}

/** Sets the token of the assembly. The first one counts, and is the outcome for every caller. */
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

/** `replaced` is the tag of the earlier part with the same number. */
type PartStored = { readonly replaced: string | undefined };

/** Records a part whose bytes are stored. It replaces the earlier one with its number. */
export function* partCommit({ accountId, uploadId, month, ...given }: NewPart): Steps<PartStored | "gone" | "joining"> {
  const upload = yield* lockedUpload({ accountId, uploadId });
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
  /** The id of the request, so that a repeat has the same outcome. */
  readonly attempt: string;
  readonly accountBytesMax: number;
  readonly at: number;
}

type JoinBegun =
  | UploadWithParts
  | { readonly done: StoredUpload }
  /** Another request joins it. */
  | "joining"
  | "missing"
  | "quota"
  | "gone";

/** Ends the changes of parts. The joined file needs its room beside them until they are removed. */
export function* joinBegin({ accountId, uploadId, owner, attempt, accountBytesMax, at }: Joining): Steps<JoinBegun> {
  const totals = yield* lockAccount(accountId);
  const upload = yield* uploadById(accountId, uploadId);
  if (!upload) return "gone";
  if (upload.state === "done") return { done: upload };
  const parts = yield* partsOf(uploadId);
  if (upload.state === "joining") return upload.attempt === attempt ? { upload, parts } : "joining";
  if (parts.length < Math.ceil(upload.size / upload.partSize)) return "missing";
  if (overAccount({ size: upload.size, accountBytesMax }, totals)) return "quota";
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
  /** The request that joins. Another one may have begun since. */
  readonly attempt: string;
}

/** Ends an attempt to join. The `lost` parts must come again. */
export function* joinEnd(of: OfJoin & { readonly lost: readonly number[] }): Steps<"ended"> {
  const { attempt, lost } = of;
  const upload = yield* lockedUpload(of);
  if (upload?.state !== "joining" || upload.attempt !== attempt) return "ended";
  yield* reopen(upload);
  yield* dropParts(upload.id, lost);
  return "ended";
}

/** Makes an upload that is not joined any more take parts again, and ends the reservation of the copy. */
function* reopen({ id, accountId, size }: StoredUpload): Steps<void> {
  yield* changes("UPDATE run_uploads SET state = 'open', owner = NULL, attempt = NULL WHERE id = $1", id);
  yield* changeAccount(accountId, { reserved: -size });
}

interface LostAssembly extends OfUpload {
  /** The token of the assembly that is gone. */
  readonly token: string;
  /** The request that joins the parts and found it. */
  readonly attempt?: string;
}

/**
 * Records that the backend has dropped all parts by itself: they must come again, into an assembly that the next one begins. If another
 * assembly has begun since, nothing is lost. The outcome is `joining` if another request joins the parts, and finds out by itself.
 */
export function* uploadLost({ token, attempt, ...of }: LostAssembly): Steps<"open" | "joining" | "gone"> {
  const upload = yield* lockedUpload(of);
  if (!upload || upload.state === "done") return "gone";
  if (upload.state === "joining") {
    if (upload.attempt !== attempt) return "joining";
    yield* reopen(upload);
  }
  if (upload.token !== token) return "open";
  yield* changes("UPDATE run_uploads SET token = NULL WHERE id = $1", upload.id);
  yield* changes("DELETE FROM run_parts WHERE upload_id = $1", upload.id);
  return "open";
}

/** Drops parts that are not what the client meant. The outcome is `kept` if they are joined, or if the upload has ended. */
export function* partsDrop(of: OfUpload & { readonly lost: readonly number[] }): Steps<"dropped" | "kept"> {
  if ((yield* lockedUpload(of))?.state !== "open") return "kept";
  yield* dropParts(of.uploadId, of.lost);
  return "dropped";
}

function* dropParts(uploadId: string, lost: readonly number[]): Steps<void> {
  const text = `DELETE FROM run_parts WHERE upload_id = $1 AND CAST(part AS TEXT) IN ${listed(2)}`;
  yield* changes(text, uploadId, JSON.stringify(lost.map(String)));
}

/**
 * Makes the joined blob the file at its path. The answer and the parts stay recorded: a client that lost the answer resumes, and finds
 * that nothing is missing.
 */
export function* joinCommit(
  of: OfJoin & Pick<FileRecord, "sha256" | "at" | "storedAt"> & { readonly expiresAt: number },
): Steps<Stored | "gone"> {
  const { accountId, uploadId, attempt, sha256, at, storedAt, expiresAt } = of;
  yield* lockAccount(accountId);
  const before = yield* causedBefore(accountId, attempt);
  if (before) return { replaced: before.said === "replaced" };
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
  const stored = yield* setFile({ accountId, runId, path, blobId, size, sha256, at, storedAt });
  yield* forgetDone(runId, path);
  yield* changes(
    "UPDATE run_uploads SET state = 'done', owner = NULL, attempt = NULL, sha256 = $2, expires_at = $3 WHERE id = $1",
    uploadId,
    sha256,
    expiresAt,
  );
  const said = stored.replaced ? "replaced" : "new";
  const parts = { id: partsOfBlob(blobId), token: token ?? "" };
  yield* goneBlob({ ...parts, accountId, runId, path, size, at, cause: attempt, said });
  return stored;
}

interface Drop extends OfUpload {
  readonly at: number;
  /** The request that joins it, which may drop it. */
  readonly attempt?: string;
}

/** Ends an unfinished upload; its parts are to be removed. The outcome is `unknown` if there is no such upload. */
export function* uploadDrop({ accountId, uploadId, at, attempt }: Drop): Steps<"dropped" | "unknown" | "joining"> {
  yield* lockAccount(accountId);
  if (yield* causedBefore(accountId, uploadId)) return "dropped";
  const upload = yield* uploadById(accountId, uploadId);
  if (!upload || upload.state === "done") return "unknown";
  if (upload.state === "joining" && upload.attempt !== attempt) return "joining";
  yield* forgetUpload(upload, at);
  yield* changeRun(accountId, upload.runId, { reserved: -upload.size, coming: -1, uploads: -1 });
  yield* forgetEmptyRun(accountId, upload.runId);
  return "dropped";
}
