/** Reads of the runs of robots. */
import { type Row, recordOf } from "../../store/record.ts";
import { first, listed, rows, type Steps } from "../../store/steps.ts";
import type {
  CompletedRun,
  FileKey,
  GoneBlob,
  RecordedFile,
  RunKey,
  RunUsage,
  StoredFile,
  StoredUpload,
  Unfinished,
  UploadKey,
  UploadWithParts,
} from "./records.ts";
import { RECORD, runOf } from "./totals.ts";
import { partsOf, unfinishedUploads, uploadById } from "./upload-rows.ts";

const stored = recordOf<StoredFile>("size", "storedAt");
const completed = recordOf<CompletedRun>("size", "files", "completedAt");
const gone = recordOf<GoneBlob>();
const recorded = recordOf<RecordedFile>("size");
const usage = recordOf<RunUsage>("stored", "reserved", "completed", "uploaded", "downloaded", "requests");

/** A file of a completed run; `no_run` if there is no completed run of this name. */
export function* runFile(key: FileKey): Steps<StoredFile | "no_run" | undefined> {
  const run = yield* runOf(key);
  if (!run || run.completedAt === null) return "no_run";
  const text = "SELECT blob_id, size, sha256, stored_at FROM run_files WHERE run_id = $1 AND path = $2";
  const row = yield* first<Row>(text, run.id, key.path);
  return row && stored(row);
}

/** JSON; undefined if there is no completed run of this name. */
export function* runManifest(key: RunKey): Steps<string | undefined> {
  return (yield* runOf(key))?.manifest ?? undefined;
}

/** The run after which a page of the list begins. */
export interface ListCursor {
  readonly completedAt: number;
  readonly id: string;
}

export interface Listing {
  readonly accountId: string;
  readonly robot: string | undefined;
  readonly after: ListCursor | undefined;
  readonly limit: number;
}

/** Completed runs, the newest first. */
export function* runsListed({ accountId, robot, after, limit }: Listing): Steps<readonly CompletedRun[]> {
  // Each form has its index. With `IS NOT NULL` beside the cursor, SQLite prefers the index of all robots to that of one.
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

export function* runUpload(key: UploadKey): Steps<UploadWithParts | undefined> {
  const upload = yield* uploadById(key.accountId, key.uploadId);
  if (!upload || upload.path !== key.path) return undefined;
  const run = yield* runOf(key);
  if (run?.id !== upload.runId) return undefined;
  return { upload, parts: yield* partsOf(upload.id) };
}

export function* uploadsAt(key: FileKey): Steps<readonly StoredUpload[]> {
  const run = yield* runOf(key);
  return run ? yield* unfinishedUploads(run.id, key.path) : [];
}

export function* runUsage({ accountId, month }: { accountId: string; month: number }): Steps<RunUsage> {
  const totals = yield* first<Row>(
    "SELECT stored, reserved, completed FROM run_accounts WHERE account_id = $1",
    accountId,
  );
  const counted = yield* first<Row>(
    "SELECT uploaded, downloaded, requests FROM run_months WHERE account_id = $1 AND month = $2",
    accountId,
    month,
  );
  return usage({ ...NOTHING, ...totals, ...counted });
}

const NOTHING = { stored: 0n, reserved: 0n, completed: 0n, uploaded: 0n, downloaded: 0n, requests: 0n };

/** The id of this store; undefined if it has none yet. */
export function* storeIdKnown(): Steps<string | undefined> {
  return (yield* first<{ id: string }>("SELECT id FROM run_store"))?.id;
}

/** The most rows that one query of the sweep finds. */
const SWEEP_MAX = 256;

/** Bytes to be removed that are gone since `before`. */
export function* blobsGone({ before }: { readonly before: number }): Steps<readonly GoneBlob[]> {
  const text = `SELECT id, token FROM run_blobs WHERE state = 'gone' AND at <= $1 ORDER BY at LIMIT ${SWEEP_MAX}`;
  return (yield* rows<Row>(text, before)).map(gone);
}

/** Selects the work of ended processes: that of an owner, and that which began before a time. */
interface OwnerFilter {
  readonly owner: string | undefined;
  readonly before: number;
  /** The ids of files and the attempts of uploads that still run. */
  readonly live: readonly string[];
}

/** Files whose process has ended. */
export function* blobsLeft({ owner, before, live }: OwnerFilter): Steps<readonly Unfinished[]> {
  return yield* rows<Unfinished>(
    `SELECT id, account_id AS "accountId" FROM run_blobs
     WHERE state IN ('coming', 'doomed') AND (owner = $1 OR at < $2) AND id NOT IN ${listed(3)} LIMIT ${SWEEP_MAX}`,
    owner ?? "",
    before,
    JSON.stringify(live),
  );
}

/** Uploads whose joining process has ended. */
export function* joinsLeft({ owner, before, live }: OwnerFilter): Steps<readonly Required<Unfinished>[]> {
  return yield* rows<Required<Unfinished>>(
    `SELECT id, account_id AS "accountId", attempt FROM run_uploads
     WHERE state = 'joining' AND (owner = $1 OR joining_at < $2) AND attempt NOT IN ${listed(3)} LIMIT ${SWEEP_MAX}`,
    owner ?? "",
    before,
    JSON.stringify(live),
  );
}

export function* uploadsExpired({ before }: { readonly before: number }): Steps<readonly Unfinished[]> {
  return yield* rows<Unfinished>(
    `SELECT id, account_id AS "accountId" FROM run_uploads WHERE state = 'open' AND expires_at < $1 LIMIT ${SWEEP_MAX}`,
    before,
  );
}

/** The blobs among these that a row names. One of no account is that of a blob without a record (`blobsUnnamed`). */
export function* blobsKnown({ ids }: { readonly ids: readonly string[] }): Steps<readonly string[]> {
  const found = yield* rows<{ id: string }>(
    `SELECT blob_id AS id FROM run_files WHERE blob_id IN ${listed(1)}
     UNION SELECT id FROM run_blobs WHERE id IN ${listed(1)} AND account_id <> ''
     UNION SELECT blob_id FROM run_uploads WHERE blob_id IN ${listed(1)}
     UNION SELECT substr(id, 7) FROM run_blobs WHERE substr(id, 7) IN ${listed(1)} AND id LIKE 'parts-%' AND account_id <> ''`,
    JSON.stringify(ids),
  );
  return found.map(({ id }) => id);
}

/** A page of files in the order of their blobs, for the check of the blobs. */
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

const bytesOf = (from: string) => `(SELECT coalesce(CAST(sum(size) AS BIGINT), 0) FROM ${from})`;
const countOf = (from: string) => `(SELECT count(*) FROM ${from})`;
const ofRuns = (sum: string) =>
  `(SELECT coalesce(CAST(sum(${sum}) AS BIGINT), 0) FROM robot_runs
    WHERE robot_runs.account_id = run_accounts.account_id)`;

const FILES = "run_files WHERE run_id = robot_runs.id";
const BLOBS = "run_blobs WHERE run_id = robot_runs.id AND state = 'coming'";
const UPLOADS = "run_uploads WHERE run_id = robot_runs.id AND state <> 'done'";
const RUNS = "robot_runs WHERE robot_runs.account_id = run_accounts.account_id AND completed_at IS NOT NULL";
const JOINS = "run_uploads WHERE run_uploads.account_id = run_accounts.account_id AND state = 'joining'";

/** What a run counts for its account (totals.ts). */
const STORED = `robot_runs.stored + (1 + files + uploads) * ${RECORD} + coalesce(octet_length(manifest), 0)`;
const RESERVED = `robot_runs.reserved + (coming - uploads) * ${RECORD}`;

/** Each total: its name, its column, and what it must be. */
const TOTALS = {
  "robot_runs.id": [
    ["run_files", "files", countOf(FILES)],
    ["run_bytes", "stored", bytesOf(FILES)],
    ["run_reserved", "reserved", `${bytesOf(BLOBS)} + ${bytesOf(UPLOADS)}`],
    ["run_uploads", "uploads", countOf(UPLOADS)],
    ["run_coming", "coming", `uploads + ${countOf(BLOBS)}`],
  ],
  "run_accounts.account_id": [
    ["account_completed", "completed", countOf(RUNS)],
    ["account_runs", "runs", ofRuns("1")],
    ["account_stored", "stored", ofRuns(STORED)],
    ["account_reserved", "reserved", `${ofRuns(RESERVED)} + ${bytesOf(JOINS)}`],
  ],
} as const;

const WRONG_TOTALS = Object.entries(TOTALS)
  .flatMap(([key, totals]) =>
    totals.map(([of, column, sum]) => {
      const [table = ""] = key.split(".");
      return `SELECT '${of}' AS of, id, total, sum FROM
        (SELECT ${key} AS id, ${table}.${column} AS total, ${sum} AS sum FROM ${table}) AS ${of} WHERE total <> sum`;
    }),
  )
  .join(" UNION ALL ");

/** The totals that are not the sums of what they count. */
export function* runTotalsWrong(): Steps<readonly WrongTotal[]> {
  return yield* rows<WrongTotal>(WRONG_TOTALS);
}
