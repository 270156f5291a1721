/** The store's domain of the runs of robots, and its writes of whole runs: completing and deleting. */
import type { DomainOf, Slice } from "../../store/domain.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, rows, type Steps } from "../../store/steps.ts";
import type { BlobsDown } from "../blob/blobs.ts";
import { causedBefore, fileAbort, fileBegin, fileCommit, fileDelete, forgetDone, goneBlob } from "./files.ts";
import * as reads from "./reads.ts";
import type { Incomplete, ListedFile, RunBounds, RunKey, StoredFile } from "./records.ts";
import * as sweep from "./sweep.ts";
import { changeAccount, changeRun, lockAccount, overAccount, runOf, unfinishedOf } from "./totals.ts";
import { forgetUpload, unfinishedUploads } from "./upload-rows.ts";
import * as uploads from "./uploads.ts";

interface Complete extends RunKey, Pick<RunBounds, "accountBytesMax"> {
  /** Paths are unique. */
  readonly files: readonly ListedFile[];
  /** JSON. */
  readonly metadata: string;
  readonly at: number;
  /** Why nothing may be written. A run that is completed already needs no room. */
  readonly down?: BlobsDown | undefined;
}

type Completion =
  | { readonly manifest: string }
  | { readonly incomplete: Incomplete }
  /** An unfinished upload owns this path. */
  | { readonly unfinished: string }
  | "run_completed"
  | { readonly down: BlobsDown }
  | "quota";

/** Completes a run that has exactly the files of the list. A repeat with the same list has the same manifest. */
function* runComplete({ files, metadata, at, accountBytesMax, down, ...key }: Complete): Steps<Completion> {
  const { accountId, robot, run: name } = key;
  const totals = yield* lockAccount(accountId);
  const run = yield* runOf(key);
  const there = run ? yield* filesOf(run.id) : [];
  const incomplete = difference(files, there);
  if (run && run.completedAt !== null) return incomplete ? "run_completed" : { manifest: run.manifest ?? "" };
  const unfinished = run && (yield* unfinishedOf(run.id));
  if (unfinished !== undefined) return { unfinished };
  if (incomplete) return { incomplete };
  if (!run) return { incomplete: { why: "missing", path: files[0]?.path ?? "" } };
  if (down) return { down };
  const types = new Map(files.map(({ path, contentType }) => [path, contentType]));
  const manifest = {
    object: "robot.run",
    robot,
    run: name,
    completed_at: at,
    size: Number(run.stored),
    files: there.map(({ path, size, sha256 }) => {
      return { path, size, sha256: sha256.toHex(), content_type: types.get(path) };
    }),
    metadata: JSON.parse(metadata) as unknown,
  };
  const text = JSON.stringify(manifest);
  const size = Buffer.byteLength(text);
  if (overAccount({ size, accountBytesMax }, totals)) return "quota";
  yield* changes("UPDATE robot_runs SET completed_at = $2, manifest = $3 WHERE id = $1", run.id, at, text);
  yield* changeAccount(accountId, { stored: size, completed: 1 });
  return { manifest: text };
}

type FileRow = Pick<StoredFile, "size" | "sha256"> & { readonly path: string };
const fileRow = recordOf<FileRow>("size");

function* filesOf(runId: string): Steps<readonly FileRow[]> {
  const found = yield* rows<Row>("SELECT path, size, sha256 FROM run_files WHERE run_id = $1 ORDER BY path", runId);
  return found.map(fileRow);
}

function difference(files: readonly ListedFile[], there: readonly FileRow[]): Incomplete | undefined {
  const stored = new Map(there.map((file) => [file.path, file]));
  for (const { path, size, sha256 } of files) {
    const found = stored.get(path);
    if (!found) return { why: "missing", path };
    if (found.size !== size) return { why: "size", path, stored: String(found.size) };
    const hex = found.sha256.toHex();
    if (sha256 !== undefined && sha256 !== hex) return { why: "digest", path, stored: hex };
  }
  const listed = new Set(files.map(({ path }) => path));
  const unlisted = there.find(({ path }) => !listed.has(path));
  return unlisted && { why: "unlisted", path: unlisted.path };
}

interface Deletion extends RunKey {
  /** The id of the request, so that a repeat has the same outcome. */
  readonly cause: string;
  readonly at: number;
}

/** Deletes a run in any state, with its files and uploads. Requests that still send to it find it gone. */
function* runDelete({ cause, at, ...key }: Deletion): Steps<"deleted" | "run_not_found"> {
  const { accountId } = key;
  yield* lockAccount(accountId);
  if (yield* causedBefore(accountId, cause)) return "deleted";
  const run = yield* runOf(key);
  if (!run) return "run_not_found";
  yield* forgetDone(run.id);
  // A run has few of them.
  for (const upload of yield* unfinishedUploads(run.id)) yield* forgetUpload(upload, at);
  yield* changes(
    `INSERT INTO run_blobs (id, state, account_id, run_id, path, size, said, at)
     SELECT blob_id, 'gone', $2, run_id, path, size, CASE replaced WHEN 1 THEN 'replaced' ELSE 'new' END, $3
     FROM run_files WHERE run_id = $1`,
    run.id,
    accountId,
    at,
  );
  yield* changes("DELETE FROM run_files WHERE run_id = $1", run.id);
  // Their process still writes them. It removes them, or the sweep does when the process has ended.
  yield* changes("UPDATE run_blobs SET state = 'doomed' WHERE run_id = $1 AND state = 'coming'", run.id);
  const { stored, files, reserved, coming, uploads, manifest, completedAt } = run;
  const all = Object.entries({ stored, files, reserved, coming, uploads });
  yield* changeRun(accountId, run.id, Object.fromEntries(all.map(([total, value]) => [total, -Number(value)])));
  yield* changes("DELETE FROM robot_runs WHERE id = $1", run.id);
  const completed = completedAt === null ? 0 : -1;
  yield* changeAccount(accountId, { stored: -Buffer.byteLength(manifest ?? ""), runs: -1, completed });
  // The row of the deletion itself has no bytes.
  yield* goneBlob({ id: cause, accountId, runId: run.id, path: "", size: 0, at, cause });
  return "deleted";
}

const writes = { runComplete, runDelete, fileAbort, fileBegin, fileCommit, fileDelete, ...uploads, ...sweep };

export const runs = {
  reads,
  writes,
  // A crash of the machine loses them with their bytes, which the sweep finds, or without any bytes.
  notDurable: ["fileBegin", "fileAbort", "blobsForget", "blobsDefer", "runsMeter"],
  snapshots: ["runTotalsWrong"],
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type RunStore = Slice<typeof runs>;
