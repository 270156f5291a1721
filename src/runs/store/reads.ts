/** Reads of the runs of robots. */
import { type Row, recordOf } from "../../store/record.ts";
import { first, listed, rows, type Steps } from "../../store/steps.ts";
import type {
  Coming,
  ComingJoin,
  CompletedRun,
  FileKey,
  GoneBlob,
  RecordedFile,
  RunKey,
  RunUsage,
  StoredFile,
  StoredPart,
  StoredUpload,
} from "./records.ts";
import { runOf } from "./totals.ts";
import { partsOf, unfinishedUploads, uploadById } from "./uploads.ts";

const stored = recordOf<StoredFile>("size", "storedAt");
const completed = recordOf<CompletedRun>("size", "files", "completedAt");
const gone = recordOf<GoneBlob>();
const recorded = recordOf<RecordedFile>("size");

/** A file of a completed run. `no_run`: there is no completed run of this name. */
export function* runFile(key: FileKey): Steps<StoredFile | "no_run" | undefined> {
  const run = yield* runOf(key);
  if (!run || run.completedAt === null) return "no_run";
  const text = "SELECT blob_id, size, sha256, stored_at FROM run_files WHERE run_id = $1 AND path = $2";
  const row = yield* first<Row>(text, run.id, key.path);
  return row && stored(row);
}

/** JSON; undefined: there is no completed run of this name. */
export function* runManifest(key: RunKey): Steps<string | undefined> {
  return (yield* runOf(key))?.manifest ?? undefined;
}

/** The run after which a page of the list begins. */
export interface ListPlace {
  readonly completedAt: number;
  readonly id: string;
}

interface Listing {
  readonly accountId: string;
  readonly robot: string | undefined;
  readonly after: ListPlace | undefined;
  readonly limit: number;
}

/** Completed runs, the newest first. */
export function* runsListed({ accountId, robot, after, limit }: Listing): Steps<readonly CompletedRun[]> {
  // Each form has its index. With `IS NOT NULL` beside the place, SQLite prefers the index of all robots to that of one.
  const from =
    after === undefined ? "completed_at IS NOT NULL" : "(completed_at < $at OR (completed_at = $at AND id < $id))";
  const found = yield* rows<Row>(
    `SELECT id, robot, run, stored AS size, files, completed_at FROM robot_runs
     WHERE account_id = $accountId ${robot === undefined ? "" : "AND robot = $robot"} AND ${from}
     ORDER BY completed_at DESC, id DESC LIMIT $limit`,
    { accountId, robot, at: after?.completedAt, id: after?.id, limit },
  );
  return found.map(completed);
}

/** An upload with its parts, as the client names it. */
export function* runUpload(
  key: FileKey & { readonly uploadId: string },
): Steps<{ readonly upload: StoredUpload; readonly parts: readonly StoredPart[] } | undefined> {
  const upload = yield* uploadById(key.accountId, key.uploadId);
  if (!upload || upload.path !== key.path) return undefined;
  const run = yield* runOf(key);
  if (run?.id !== upload.runId) return undefined;
  return { upload, parts: yield* partsOf(upload.id) };
}

/** The unfinished uploads of a path. */
export function* uploadsAt(key: FileKey): Steps<readonly StoredUpload[]> {
  const run = yield* runOf(key);
  return run ? yield* unfinishedUploads(run.id, key.path) : [];
}

export function* runUsage({ accountId, month }: { accountId: string; month: number }): Steps<RunUsage> {
  const totals = yield* first<{ stored: bigint; reserved: bigint; completed: bigint }>(
    "SELECT stored, reserved, completed FROM run_accounts WHERE account_id = $1",
    accountId,
  );
  const counted = yield* first<{ uploaded: bigint; downloaded: bigint; requests: bigint }>(
    "SELECT uploaded, downloaded, requests FROM run_months WHERE account_id = $1 AND month = $2",
    accountId,
    month,
  );
  return {
    stored: Number(totals?.stored ?? 0n),
    reserved: Number(totals?.reserved ?? 0n),
    completed: Number(totals?.completed ?? 0n),
    uploaded: Number(counted?.uploaded ?? 0n),
    downloaded: Number(counted?.downloaded ?? 0n),
    requests: Number(counted?.requests ?? 0n),
  };
}

/** The id of this store; undefined: it has none yet. */
export function* storeIdKnown(): Steps<string | undefined> {
  return (yield* first<{ id: string }>("SELECT id FROM run_store"))?.id;
}

/** How many one question of the sweep finds. */
const SWEEP_MAX = 256;

/** Bytes to be removed, gone since before. */
export function* blobsGone({ before }: { readonly before: number }): Steps<readonly GoneBlob[]> {
  const text = `SELECT id, token FROM run_blobs WHERE state = 'gone' AND at <= $1 ORDER BY at LIMIT ${SWEEP_MAX}`;
  return (yield* rows<Row>(text, before)).map(gone);
}

/** What ended processes were doing: of one by its name, of all, or of those that began long ago. */
interface OwnerFilter {
  readonly owner: string | undefined;
  readonly before: number;
  /** What is not left, though its owner or its age says so: ids of files, attempts of uploads. */
  readonly live: readonly string[];
}

/** Files that were coming. */
export function* blobsLeft({ owner, before, live }: OwnerFilter): Steps<readonly Coming[]> {
  return yield* rows<{ id: string; accountId: string }>(
    `SELECT id, account_id AS "accountId" FROM run_blobs
     WHERE state IN ('coming', 'doomed') AND (owner = $1 OR at < $2) AND id NOT IN ${listed(3)} LIMIT ${SWEEP_MAX}`,
    owner ?? "",
    before,
    JSON.stringify(live),
  );
}

/** Uploads that were being put together. */
export function* joinsLeft({ owner, before, live }: OwnerFilter): Steps<readonly ComingJoin[]> {
  return yield* rows<{ id: string; accountId: string; attempt: string }>(
    `SELECT id, account_id AS "accountId", attempt FROM run_uploads
     WHERE state = 'joining' AND (owner = $1 OR joining_at < $2) AND attempt NOT IN ${listed(3)} LIMIT ${SWEEP_MAX}`,
    owner ?? "",
    before,
    JSON.stringify(live),
  );
}

/** Unfinished uploads that nobody goes on with. */
export function* uploadsExpired({ before }: { readonly before: number }): Steps<readonly Coming[]> {
  return yield* rows<{ id: string; accountId: string }>(
    `SELECT id, account_id AS "accountId" FROM run_uploads WHERE state = 'open' AND expires_at < $1 LIMIT ${SWEEP_MAX}`,
    before,
  );
}

/** Those of the blobs that a row names. */
export function* blobsKnown({ ids }: { readonly ids: readonly string[] }): Steps<readonly string[]> {
  const found = yield* rows<{ id: string }>(
    `SELECT blob_id AS id FROM run_files WHERE blob_id IN ${listed(1)}
     UNION SELECT id FROM run_blobs WHERE id IN ${listed(1)}
     UNION SELECT blob_id FROM run_uploads WHERE blob_id IN ${listed(1)}
     UNION SELECT substr(id, 7) FROM run_blobs WHERE substr(id, 7) IN ${listed(1)} AND id LIKE 'parts-%'`,
    JSON.stringify(ids),
  );
  return found.map(({ id }) => id);
}

/** Files in the order of their blobs, a page at a time: for the check that their blobs are there. */
export function* filesAfter({ after }: { readonly after: string }): Steps<readonly RecordedFile[]> {
  const found = yield* rows<Row>(
    `SELECT blob_id, size, sha256, path, account_id, robot, run
     FROM (SELECT blob_id, size, sha256, path, run_id FROM run_files WHERE blob_id > $1 ORDER BY blob_id LIMIT 1000) AS page
     LEFT JOIN robot_runs ON robot_runs.id = page.run_id ORDER BY blob_id`,
    after,
  );
  return found.map(recorded);
}

export interface WrongTotal {
  readonly of: string;
  readonly id: string;
  readonly total: bigint;
  readonly sum: bigint;
}

/** Totals that are not the sums of what they count; none, if all is right. */
export function* runTotalsWrong(): Steps<readonly WrongTotal[]> {
  return yield* rows<WrongTotal>(
    `SELECT 'run_files' AS of, id, files AS total, sum FROM
       (SELECT id, files, (SELECT count(*) FROM run_files WHERE run_id = robot_runs.id) AS sum FROM robot_runs) AS a
       WHERE files <> sum
     UNION ALL SELECT 'run_bytes', id, stored, sum FROM
       (SELECT id, stored, (SELECT coalesce(CAST(sum(size) AS BIGINT), 0) FROM run_files WHERE run_id = robot_runs.id) AS sum FROM robot_runs) AS b
       WHERE stored <> sum
     UNION ALL SELECT 'run_reserved', id, reserved, sum FROM
       (SELECT id, reserved,
          (SELECT coalesce(CAST(sum(size) AS BIGINT), 0) FROM run_blobs WHERE run_id = robot_runs.id AND state = 'coming')
          + (SELECT coalesce(CAST(sum(size) AS BIGINT), 0) FROM run_uploads WHERE run_id = robot_runs.id AND state <> 'done') AS sum
        FROM robot_runs) AS c
       WHERE reserved <> sum
     UNION ALL SELECT 'run_uploads', id, uploads, sum FROM
       (SELECT id, uploads, (SELECT count(*) FROM run_uploads WHERE run_id = robot_runs.id AND state <> 'done') AS sum FROM robot_runs) AS f
       WHERE uploads <> sum
     UNION ALL SELECT 'run_coming', id, coming, sum FROM
       (SELECT id, coming,
          uploads + (SELECT count(*) FROM run_blobs WHERE run_id = robot_runs.id AND state = 'coming') AS sum
        FROM robot_runs) AS g
       WHERE coming <> sum
     UNION ALL SELECT 'account_completed', account_id, completed, sum FROM
       (SELECT account_id, completed,
          (SELECT count(*) FROM robot_runs WHERE robot_runs.account_id = run_accounts.account_id AND completed_at IS NOT NULL) AS sum
        FROM run_accounts) AS h
       WHERE completed <> sum
     UNION ALL SELECT 'account_stored', account_id, stored, sum FROM
       (SELECT account_id, stored, (SELECT coalesce(CAST(sum(robot_runs.stored) AS BIGINT), 0) FROM robot_runs WHERE robot_runs.account_id = run_accounts.account_id) AS sum FROM run_accounts) AS d
       WHERE stored <> sum
     UNION ALL SELECT 'account_reserved', account_id, reserved, sum FROM
       (SELECT account_id, reserved,
          (SELECT coalesce(CAST(sum(robot_runs.reserved) AS BIGINT), 0) FROM robot_runs WHERE robot_runs.account_id = run_accounts.account_id)
          + (SELECT coalesce(CAST(sum(size) AS BIGINT), 0) FROM run_uploads WHERE run_uploads.account_id = run_accounts.account_id AND state = 'joining') AS sum
        FROM run_accounts) AS e
       WHERE reserved <> sum`,
  );
}
