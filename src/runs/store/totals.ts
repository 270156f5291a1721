/** The totals of an account and of a run, and the row that every write locks first. */
import { changes, first, type Steps } from "../../store/steps.ts";
import type { RunKey } from "./records.ts";

export interface Totals {
  readonly stored: bigint;
  readonly reserved: bigint;
}

/** Other writes of the account wait until this one has ended. */
export function* lockAccount(accountId: string): Steps<Totals> {
  const text = "SELECT stored, reserved FROM run_accounts WHERE account_id = $1 FOR NO KEY UPDATE";
  const found = yield* first<Totals>(text, accountId);
  if (found) return found;
  yield* changes(
    "INSERT INTO run_accounts (account_id, stored, reserved, completed) VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING",
    accountId,
  );
  return (yield* first<Totals>(text, accountId)) ?? { stored: 0n, reserved: 0n };
}

/** What the account's totals change by; bytes, and completed runs. */
interface Change {
  readonly stored?: number;
  readonly reserved?: number;
  readonly completed?: number;
}

export function* changeAccount(accountId: string, { stored = 0, reserved = 0, completed = 0 }: Change): Steps<void> {
  yield* changes(
    `UPDATE run_accounts SET stored = stored + $stored, reserved = reserved + $reserved, completed = completed + $completed
     WHERE account_id = $accountId`,
    { accountId, stored, reserved, completed },
  );
}

/** What a run's totals change by: bytes; files that are there, files on their way, unfinished uploads. */
interface RunChange {
  readonly stored?: number;
  readonly files?: number;
  readonly reserved?: number;
  readonly coming?: number;
  readonly uploads?: number;
}

/** The account's change is the same in bytes. */
export function* changeRun(accountId: string, runId: string, change: RunChange): Steps<void> {
  const { stored = 0, files = 0, reserved = 0, coming = 0, uploads = 0 } = change;
  yield* changes(
    `UPDATE robot_runs SET stored = stored + $stored, files = files + $files, reserved = reserved + $reserved,
       coming = coming + $coming, uploads = uploads + $uploads
     WHERE id = $runId`,
    { runId, stored, files, reserved, coming, uploads },
  );
  yield* changeAccount(accountId, { stored, reserved });
}

/** A run is there as long as it has a file, or one is on its way. */
export function* forgetEmptyRun(runId: string): Steps<void> {
  yield* changes("DELETE FROM robot_runs WHERE id = $1 AND completed_at IS NULL AND files = 0 AND coming = 0", runId);
}

export interface RunRow {
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

/** Counts bytes that came; the meter counts the request that brought them. */
export function* countUpload(accountId: string, month: number, bytes: number): Steps<void> {
  yield* changes(
    `INSERT INTO run_months (account_id, month, uploaded, downloaded, requests) VALUES ($1, $2, $3, 0, 0)
     ON CONFLICT (account_id, month) DO UPDATE SET uploaded = run_months.uploaded + excluded.uploaded`,
    accountId,
    month,
    bytes,
  );
}
