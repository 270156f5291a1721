/** Writes of the sweep and of the meter. */
import { changes, first, listed, rows, type Steps } from "../../store/steps.ts";
import { goneBlob } from "./files.ts";
import type { Metered } from "./records.ts";
import { partsOfBlob } from "./upload-rows.ts";

interface Mark {
  /** The marker of the bytes (../ownership.ts); empty if there is none. */
  readonly found: string;
  /** The id of this store, if it has none yet. */
  readonly id: string;
  /** The next generation. */
  readonly generation: string;
  /** Whether another marker may be replaced. */
  readonly adopt: boolean;
}

interface StoreRow {
  readonly id: string;
  readonly generation: string;
  readonly marked: string;
}

/** The marker that the bytes are to have next; `own` if another one is theirs. The row then has both, until the bytes have the new one. */
export function* runsMark(mark: Mark): Steps<{ readonly marker: string } | { readonly own: string }> {
  const { found, id, generation, adopt } = mark;
  yield* changes("INSERT INTO run_store (one, id) VALUES (1, $1) ON CONFLICT DO NOTHING", id);
  const row = yield* first<StoreRow>("SELECT id, generation, marked FROM run_store FOR NO KEY UPDATE");
  const { id: storeId, generation: current, marked } = row ?? { id, generation: "", marked: "" };
  const markerOf = (of: string) => `${storeId} ${of}`.trim();
  const own = markerOf(current);
  const files = yield* first("SELECT 1 AS one FROM run_files UNION ALL SELECT 1 FROM run_parts LIMIT 1");
  const isFree = found === "" && !files;
  // Another node has begun this generation, or a process ended before it wrote the marker.
  if (current !== "" && (isFree || (found !== "" && found === marked))) return { marker: own };
  if (found !== own && !isFree && !adopt) return { own };
  yield* changes("UPDATE run_store SET generation = $1, marked = $2", generation, found);
  return { marker: markerOf(generation) };
}

/** Marks bytes without a row as gone at a time to come. */
export function* blobsUnnamed({ ids, at }: { readonly ids: readonly string[]; readonly at: number }): Steps<"marked"> {
  const nobody = { accountId: "", runId: "", path: "", size: 0, at };
  for (const id of ids) {
    yield* goneBlob({ ...nobody, id: partsOfBlob(id) });
    yield* goneBlob({ ...nobody, id });
  }
  return "marked";
}

/** Forgets rows whose bytes are removed. */
export function* blobsForget({ ids }: { readonly ids: readonly string[] }): Steps<"forgotten"> {
  yield* changes(`DELETE FROM run_blobs WHERE state = 'gone' AND id IN ${listed(1)}`, JSON.stringify(ids));
  return "forgotten";
}

/** Moves rows whose bytes could not be removed to the end of the queue. */
export function* blobsDefer({ ids, at }: { readonly ids: readonly string[]; readonly at: number }): Steps<"deferred"> {
  yield* changes(`UPDATE run_blobs SET at = $2 WHERE state = 'gone' AND id IN ${listed(1)}`, JSON.stringify(ids), at);
  return "deferred";
}

/** One write forgets at most this many uploads, because other writes wait for it. Each has up to 128 parts. */
const FORGET_MAX = 64;

/** Forgets the expired answers of finished uploads. */
export function* uploadsForget({ before }: { readonly before: number }): Steps<"done" | "more"> {
  const old = yield* rows<{ id: string }>(
    `SELECT id FROM run_uploads WHERE state = 'done' AND expires_at < $1 ORDER BY expires_at LIMIT ${FORGET_MAX}`,
    before,
  );
  const ids = JSON.stringify(old.map(({ id }) => id));
  yield* changes(`DELETE FROM run_parts WHERE upload_id IN ${listed(1)}`, ids);
  yield* changes(`DELETE FROM run_uploads WHERE id IN ${listed(1)}`, ids);
  return old.length < FORGET_MAX ? "done" : "more";
}

interface Flush {
  /** The meter that counted. */
  readonly owner: string;
  /** Flushes are numbered from 1. The next one follows when this one is counted. */
  readonly flush: number;
  readonly metered: readonly Metered[];
  readonly at: number;
}

/** A meter that has not counted for this long has ended. */
const OWNER_SECONDS = 7 * 86_400;

/** Adds the counts of one flush. The owner's row has the number of its last flush, so that a repeat adds nothing. */
export function* runsMeter({ owner, flush, metered, at }: Flush): Steps<"counted"> {
  const isNew = yield* changes(
    `INSERT INTO run_meters (owner, flush, at) VALUES ($1, $2, $3)
     ON CONFLICT (owner) DO UPDATE SET flush = excluded.flush, at = excluded.at WHERE run_meters.flush < excluded.flush`,
    owner,
    flush,
    at,
  );
  if (isNew === 0) return "counted";
  if (flush === 1) yield* changes("DELETE FROM run_meters WHERE at < $1", at - OWNER_SECONDS);
  // All nodes use one order, so that no two wait for each other's rows.
  const inOrder = metered.toSorted(
    (one, other) => one.month - other.month || (one.accountId < other.accountId ? -1 : 1),
  );
  for (const { accountId, month, downloaded, requests } of inOrder) {
    yield* changes(
      `INSERT INTO run_months (account_id, month, uploaded, downloaded, requests) VALUES ($1, $2, 0, $3, $4)
       ON CONFLICT (account_id, month) DO UPDATE SET downloaded = run_months.downloaded + excluded.downloaded,
         requests = run_months.requests + excluded.requests`,
      accountId,
      month,
      downloaded,
      requests,
    );
  }
  return "counted";
}
