/** The totals of an account and of a run: the row that every write locks first, and the room for a further file. */
import { LIMITS } from "../../limits.ts";
import { changes, first, type Steps } from "../../store/steps.ts";
import type { NewFile, Refusal, RunBounds, RunKey } from "./records.ts";

export interface Totals {
  readonly stored: bigint;
  readonly reserved: bigint;
  readonly runs: bigint;
}

/** Other writes of the account wait until this one has ended. */
export function* lockAccount(accountId: string): Steps<Totals> {
  const text = "SELECT stored, reserved, runs FROM run_accounts WHERE account_id = $1 FOR NO KEY UPDATE";
  const found = yield* first<Totals>(text, accountId);
  if (found) return found;
  yield* changes(
    "INSERT INTO run_accounts (account_id, stored, reserved, completed) VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING",
    accountId,
  );
  return (yield* first<Totals>(text, accountId)) ?? { stored: 0n, reserved: 0n, runs: 0n };
}

/** The changes of an account's totals: bytes, records, and completed runs. */
type Change = Partial<Record<"stored" | "reserved" | "completed" | "runs", number>>;

export function* changeAccount(accountId: string, change: Change): Steps<void> {
  const { stored = 0, reserved = 0, completed = 0, runs = 0 } = change;
  yield* changes(
    `UPDATE run_accounts SET stored = stored + $stored, reserved = reserved + $reserved, completed = completed + $completed,
       runs = runs + $runs
     WHERE account_id = $accountId`,
    { accountId, stored: stored + runs * RECORD, reserved, completed, runs },
  );
}

/** The bytes that a record counts. */
export const RECORD = LIMITS.runRecordBytes;

/** The changes of a run's totals: bytes, stored files, coming files, unfinished uploads. */
type RunChange = Partial<Record<"stored" | "files" | "reserved" | "coming" | "uploads", number>>;

/** Changes the bytes of the account, too. There the records of files and uploads count as stored, and those of coming files as reserved. */
export function* changeRun(accountId: string, runId: string, change: RunChange): Steps<void> {
  const { stored = 0, files = 0, reserved = 0, coming = 0, uploads = 0 } = change;
  yield* changes(
    `UPDATE robot_runs SET stored = stored + $stored, files = files + $files, reserved = reserved + $reserved,
       coming = coming + $coming, uploads = uploads + $uploads
     WHERE id = $runId`,
    { runId, stored, files, reserved, coming, uploads },
  );
  yield* changeAccount(accountId, {
    stored: stored + (files + uploads) * RECORD,
    reserved: reserved + (coming - uploads) * RECORD,
  });
}

/** A run exists as long as it has a file, or one is coming. */
export function* forgetEmptyRun(accountId: string, runId: string): Steps<void> {
  const empty = "completed_at IS NULL AND files = 0 AND coming = 0";
  const forgotten = yield* changes(`DELETE FROM robot_runs WHERE id = $1 AND ${empty}`, runId);
  // Other writes of the account wait for this one, so it changes nothing in vain.
  if (forgotten > 0) yield* changeAccount(accountId, { runs: -1 });
}

interface RunRow {
  readonly id: string;
  readonly stored: bigint;
  readonly files: bigint;
  readonly reserved: bigint;
  readonly coming: bigint;
  readonly uploads: bigint;
  readonly completedAt: bigint | null;
  readonly manifest: string | null;
}

const RUN = `SELECT id, stored, files, reserved, coming, uploads, completed_at AS "completedAt", manifest FROM robot_runs`;

export function* runOf({ accountId, robot, run }: RunKey): Steps<RunRow | undefined> {
  return yield* first<RunRow>(`${RUN} WHERE account_id = $1 AND robot = $2 AND run = $3`, accountId, robot, run);
}

export function* runById(id: string): Steps<RunRow | undefined> {
  return yield* first<RunRow>(`${RUN} WHERE id = $1`, id);
}

/** Counts uploaded bytes. The meter counts their request. */
export function* countUpload(accountId: string, month: number, bytes: number): Steps<void> {
  yield* changes(
    `INSERT INTO run_months (account_id, month, uploaded, downloaded, requests) VALUES ($1, $2, $3, 0, 0)
     ON CONFLICT (account_id, month) DO UPDATE SET uploaded = run_months.uploaded + excluded.uploaded`,
    accountId,
    month,
    bytes,
  );
}

/** The id of the run, which is made for its first file, or the reason why no file of this size may come to this path. */
export function* makeRoom(
  wanted: Omit<NewFile, "owner" | "blobId">,
  totals: Totals,
  uploadsMax = Number.POSITIVE_INFINITY,
): Steps<{ readonly runId: string } | Refusal> {
  const { runId, accountId, robot, run: name, path, at } = wanted;
  const run = yield* runOf(wanted);
  if (run && run.completedAt !== null) return "run_completed";
  if (run && (yield* unfinishedOf(run.id, path))) return "path_taken";
  if (run && Number(run.uploads) >= uploadsMax) return "too_many_uploads";
  const refused = yield* overRun(wanted, run);
  if (refused) return refused;
  if (!run && totals.runs >= wanted.accountRunsMax) return "runs";
  const { size, accountBytesMax } = wanted;
  if (overAccount({ size: size + (run ? 1 : 2) * RECORD, accountBytesMax }, totals)) return "quota";
  if (run) return { runId: run.id };
  yield* changes(
    `INSERT INTO robot_runs (id, account_id, robot, run, created_at, stored, files, reserved, coming, uploads)
     VALUES ($runId, $accountId, $robot, $name, $at, 0, 0, 0, 0, 0)`,
    { runId, accountId, robot, name, at },
  );
  yield* changeAccount(accountId, { runs: 1 });
  return { runId };
}

type FileRequest = RunBounds & { readonly path: string; readonly size: number };

/** A path counts once in its run, with its largest file: the others are replaced, or replace it. */
function* overRun(
  { path, size, runBytesMax, runFilesMax }: FileRequest,
  run: RunRow | undefined,
): Steps<"run_bytes" | "run_files" | undefined> {
  const { id = "", stored = 0n, reserved = 0n, files = 0n, coming = 0n } = run ?? {};
  const atMost = { bytes: stored + reserved + BigInt(size), files: files + coming + 1n };
  const fits = atMost.bytes <= BigInt(runBytesMax) && atMost.files <= BigInt(runFilesMax);
  const { bytes, files: paths } = fits ? atMost : ((yield* largestOf(id, path, size)) ?? atMost);
  if (bytes > BigInt(runBytesMax)) return "run_bytes";
  return paths > BigInt(runFilesMax) ? "run_files" : undefined;
}

function* largestOf(runId: string, path: string, size: number): Steps<{ bytes: bigint; files: bigint } | undefined> {
  return yield* first<{ bytes: bigint; files: bigint }>(
    `SELECT CAST(sum(size) AS BIGINT) AS bytes, count(*) AS files FROM
       (SELECT path, max(size) AS size FROM
          (SELECT path, size FROM run_files WHERE run_id = $runId
           UNION ALL SELECT path, size FROM run_blobs WHERE run_id = $runId AND state = 'coming'
           UNION ALL SELECT path, size FROM run_uploads WHERE run_id = $runId AND state <> 'done'
           UNION ALL SELECT CAST($path AS TEXT), CAST($size AS BIGINT)) AS every_one
        GROUP BY path) AS largest`,
    { runId, path, size },
  );
}

/** A file and its replacement both count until the replacement is stored. */
export function overAccount(
  { size, accountBytesMax }: Pick<FileRequest, "size" | "accountBytesMax">,
  { stored, reserved }: Totals,
): boolean {
  return stored + reserved + BigInt(size) > BigInt(accountBytesMax);
}

export function* unfinishedOf(runId: string, path?: string): Steps<string | undefined> {
  const ofPath = path === undefined ? "" : "AND path = $path";
  const text = `SELECT path FROM run_uploads WHERE run_id = $runId ${ofPath} AND state <> 'done' LIMIT 1`;
  return (yield* first<{ path: string }>(text, { runId, path }))?.path;
}
