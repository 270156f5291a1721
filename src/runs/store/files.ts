/** Files of a run that are sent in one request, and their deletion. */
import { changes, first, type Steps } from "../../store/steps.ts";
import type { FileKey, NewFile, Precondition, Refusal, Stored, Tags } from "./records.ts";
import { changeRun, countUpload, forgetEmptyRun, lockAccount, makeRoom, runById, runOf } from "./totals.ts";

/**
 * Forgets the answers of finished uploads, of this path or of all. They go with their file and after a later upload, so that a run never
 * has more of them than files.
 */
export function* forgetDone(runId: string, path?: string): Steps<void> {
  const done = `run_id = $runId ${path === undefined ? "" : "AND path = $path"} AND state = 'done'`;
  yield* changes(`DELETE FROM run_parts WHERE upload_id IN (SELECT id FROM run_uploads WHERE ${done})`, {
    runId,
    path,
  });
  yield* changes(`DELETE FROM run_uploads WHERE ${done}`, { runId, path });
}

interface FileRow {
  readonly blobId: string;
  readonly size: bigint;
  readonly sha256: Uint8Array;
  readonly replaced: bigint;
}

function* fileAt(runId: string, path: string): Steps<FileRow | undefined> {
  const text = `SELECT blob_id AS "blobId", size, sha256, replaced FROM run_files WHERE run_id = $1 AND path = $2`;
  return yield* first<FileRow>(text, runId, path);
}

function* holds({ is, isNot }: Precondition, runId: string, path: string): Steps<boolean> {
  const tag = (yield* fileAt(runId, path))?.sha256.toHex();
  const isAmong = (tags: Tags) => tag !== undefined && (tags === "any" || tags.includes(tag));
  return (is === undefined || isAmong(is)) && (isNot === undefined || !isAmong(isNot));
}

/** Reserves room for a file before its bytes come. */
export function* fileBegin(file: NewFile): Steps<"begun" | "precondition_failed" | Refusal> {
  const totals = yield* lockAccount(file.accountId);
  if (yield* first("SELECT id FROM run_blobs WHERE id = $1", file.blobId)) return "begun";
  const room = yield* makeRoom(file, totals);
  if (typeof room === "string") return room;
  const { runId } = room;
  const { accountId, blobId, path, size, owner, at, precondition = {} } = file;
  if (!(yield* holds(precondition, runId, path))) {
    yield* forgetEmptyRun(accountId, runId);
    return "precondition_failed";
  }
  yield* changes(
    `INSERT INTO run_blobs (id, state, account_id, run_id, path, size, owner, at)
     VALUES ($blobId, 'coming', $accountId, $runId, $path, $size, $owner, $at)`,
    { blobId, accountId, runId, path, size, owner, at },
  );
  yield* changeRun(accountId, runId, { reserved: size, coming: 1 });
  return "begun";
}

interface BlobRow {
  readonly runId: string;
  readonly path: string;
  readonly size: bigint;
}

function* comingBlob(accountId: string, blobId: string): Steps<BlobRow | undefined> {
  return yield* first<BlobRow>(
    `SELECT run_id AS "runId", path, size FROM run_blobs WHERE id = $1 AND account_id = $2 AND state = 'coming'`,
    blobId,
    accountId,
  );
}

interface Commit {
  readonly accountId: string;
  readonly blobId: string;
  readonly precondition?: Precondition;
  readonly sha256: Uint8Array;
  /** Seen time. */
  readonly at: number;
  /** The time of storing, by the wall clock. */
  readonly storedAt: number;
  readonly month: number;
}

/**
 * - `gone`: the run was deleted meanwhile.
 * - `lost`: the reservation has ended. A crash of the database took it, or another process took this one to be dead.
 */
type NotStored = "gone" | "lost" | "run_completed" | "precondition_failed";

/**
 * Makes the blob the file at its path. After `gone`, `lost` and `run_completed` nothing is reserved any more; `precondition_failed`
 * changes nothing.
 */
export function* fileCommit(commit: Commit): Steps<Stored | NotStored> {
  const { accountId, blobId, precondition = {}, sha256, at, storedAt, month } = commit;
  yield* lockAccount(accountId);
  const coming = yield* comingBlob(accountId, blobId);
  if (!coming) {
    const doomed = yield* first("SELECT id FROM run_blobs WHERE id = $1 AND state = 'doomed'", blobId);
    return (yield* committedBefore(blobId)) ?? (doomed ? "gone" : "lost");
  }
  const { runId, path } = coming;
  const size = Number(coming.size);
  const run = yield* runById(runId);
  const isOpen = run && run.completedAt === null;
  if (isOpen && !(yield* holds(precondition, runId, path))) return "precondition_failed";
  yield* changes("DELETE FROM run_blobs WHERE id = $1", blobId);
  yield* changeRun(accountId, runId, { reserved: -size, coming: -1 });
  if (!isOpen) {
    const said = run ? "run_completed" : undefined;
    yield* goneBlob({ id: blobId, accountId, runId, path, size, at, said });
    return said ?? "gone";
  }
  const stored = yield* setFile({ accountId, runId, path, blobId, size, sha256, at, storedAt });
  yield* countUpload(accountId, month, size);
  return stored;
}

/** The outcome of the commit of a blob. Its row keeps it when the file is gone. */
export type Said = "new" | "replaced" | "run_completed";

const saidOf = ({ replaced }: Pick<FileRow, "replaced">): Said => (replaced === 1n ? "replaced" : "new");

/** The row of an earlier call of the same request, whose answer was lost; its bytes may be gone with their run. */
export function* causedBefore(accountId: string, cause: string): Steps<{ readonly said: Said | null } | undefined> {
  const text = "SELECT said FROM run_blobs WHERE cause = $1 AND account_id = $2";
  return yield* first<{ said: Said | null }>(text, cause, accountId);
}

/** A repeat of a commit whose answer was lost. */
export function* committedBefore(blobId: string): Steps<Stored | "run_completed" | undefined> {
  const file = yield* first<Pick<FileRow, "replaced">>("SELECT replaced FROM run_files WHERE blob_id = $1", blobId);
  if (file) return { replaced: file.replaced === 1n };
  const gone = yield* first<{ said: Said | null }>("SELECT said FROM run_blobs WHERE id = $1", blobId);
  if (!gone?.said) return undefined;
  return gone.said === "run_completed" ? "run_completed" : { replaced: gone.said === "replaced" };
}

/** The bytes at a path of a run, and the time of their change. */
interface PathBytes {
  readonly accountId: string;
  readonly runId: string;
  readonly path: string;
  readonly size: number;
  readonly at: number;
}

export interface FileRecord extends PathBytes {
  readonly blobId: string;
  readonly sha256: Uint8Array;
  readonly storedAt: number;
}

/** Adds or replaces the file at the path. */
export function* setFile(file: FileRecord): Steps<Stored> {
  const { accountId, runId, path, blobId, size, sha256, at, storedAt } = file;
  const old = yield* fileAt(runId, path);
  if (old) {
    const said = saidOf(old);
    yield* goneBlob({ id: old.blobId, accountId, runId, path, size: Number(old.size), at, said });
  }
  yield* changes(
    `INSERT INTO run_files (run_id, path, blob_id, size, sha256, stored_at, replaced)
     VALUES ($runId, $path, $blobId, $size, $sha256, $storedAt, $replaced)
     ON CONFLICT (run_id, path) DO UPDATE SET blob_id = excluded.blob_id, size = excluded.size, sha256 = excluded.sha256,
       stored_at = excluded.stored_at, replaced = excluded.replaced`,
    { runId, path, blobId, size, sha256, storedAt, replaced: old ? 1 : 0 },
  );
  yield* changeRun(accountId, runId, { stored: size - Number(old?.size ?? 0n), files: old ? 0 : 1 });
  return { replaced: old !== undefined };
}

interface BlobRemoval extends PathBytes {
  readonly id: string;
  /** The backend's name of an assembly. */
  readonly token?: string | undefined;
  /** The request whose repeat finds this row. */
  readonly cause?: string;
  readonly said?: Said | undefined;
}

/** Marks bytes to be removed. */
export function* goneBlob(gone: BlobRemoval): Steps<void> {
  yield* changes(
    `INSERT INTO run_blobs (id, state, token, account_id, run_id, path, size, cause, said, at)
     VALUES ($id, 'gone', $token, $accountId, $runId, $path, $size, $cause, $said, $at) ON CONFLICT DO NOTHING`,
    { token: undefined, cause: undefined, said: undefined, ...gone },
  );
}

/** Ends the reservation of a file whose bytes did not come, or must not stay. */
export function* fileAbort({ accountId, blobId, at }: Pick<Commit, "accountId" | "blobId" | "at">): Steps<"aborted"> {
  yield* lockAccount(accountId);
  const coming = yield* comingBlob(accountId, blobId);
  if (coming) {
    yield* changeRun(accountId, coming.runId, { reserved: -Number(coming.size), coming: -1 });
    yield* forgetEmptyRun(accountId, coming.runId);
  }
  // The process of a blob does not write any more, so the blob of a deleted run is gone, too.
  yield* changes("UPDATE run_blobs SET state = 'gone', at = $2 WHERE id = $1 AND state <> 'gone'", blobId, at);
  return "aborted";
}

interface Deletion extends FileKey {
  /** The id of the request, so that a repeat has the same outcome. */
  readonly cause: string;
  readonly at: number;
}

export function* fileDelete(
  deletion: Deletion,
): Steps<"deleted" | "run_not_found" | "file_not_found" | "run_completed"> {
  const { accountId, path, cause, at } = deletion;
  yield* lockAccount(accountId);
  if (yield* causedBefore(accountId, cause)) return "deleted";
  const run = yield* runOf(deletion);
  if (!run) return "run_not_found";
  if (run.completedAt !== null) return "run_completed";
  const found = yield* fileAt(run.id, path);
  if (!found) return "file_not_found";
  const size = Number(found.size);
  yield* changes("DELETE FROM run_files WHERE run_id = $1 AND path = $2", run.id, path);
  yield* forgetDone(run.id, path);
  yield* goneBlob({ id: found.blobId, accountId, runId: run.id, path, size, at, cause, said: saidOf(found) });
  yield* changeRun(accountId, run.id, { stored: -size, files: -1 });
  yield* forgetEmptyRun(accountId, run.id);
  return "deleted";
}
