/** Writes of the sweep, which takes what ended processes left; of the meter; and of what the store of bytes has lost. */
import { changes, listed, rows, type Steps } from "../../store/steps.ts";
import { storeIdKnown } from "./reads.ts";
import type { Metered } from "./records.ts";
import { changeAccount, lockAccount } from "./totals.ts";
import { uploadById } from "./uploads.ts";

/** The id of this store, by which blobs know that they belong to it; `id` if it had none. */
export function* storeId({ id }: { readonly id: string }): Steps<string> {
  yield* changes("INSERT INTO run_store (one, id) VALUES (1, $1) ON CONFLICT DO NOTHING", id);
  return (yield* storeIdKnown()) ?? id;
}

/** Their bytes are removed. */
export function* blobsForget({ ids }: { readonly ids: readonly string[] }): Steps<"forgotten"> {
  yield* changes(`DELETE FROM run_blobs WHERE state = 'gone' AND id IN ${listed(1)}`, JSON.stringify(ids));
  return "forgotten";
}

/** Their bytes could not be removed: asked for again after the others. */
export function* blobsDefer({ ids, at }: { readonly ids: readonly string[]; readonly at: number }): Steps<"deferred"> {
  yield* changes(`UPDATE run_blobs SET at = $2 WHERE state = 'gone' AND id IN ${listed(1)}`, JSON.stringify(ids), at);
  return "deferred";
}

/** Uploads that one write forgets, each with up to 128 parts: other writes wait for it. */
const FORGET_MAX = 64;

/** Answers of finished uploads that nobody asks for any more. */
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
  /** Who counted, in this process. */
  readonly owner: string;
  /** Number of this flush, from 1; the next one follows when this one is counted. */
  readonly flush: number;
  readonly metered: readonly Metered[];
  readonly at: number;
}

/** Owners do not last: one that has not counted for so long has ended. */
const OWNER_SECONDS = 7 * 86_400;

/** Adds what was counted since the last time. The owner's row knows which flush that was, so that a repeat adds nothing. */
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
  // In one order, so that two nodes never wait for each other's rows.
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

interface LostAssembly {
  readonly accountId: string;
  readonly uploadId: string;
  /** What the backend called the assembly that is not there any more. */
  readonly token: string;
  /** The request that joins the parts and found it. */
  readonly attempt?: string;
}

/**
 * The backend has dropped the parts by itself: all must come again, into an assembly that the next one begins. Where another one has been begun since, nothing is lost.
 * `joining`: another request puts the parts together, and will know better.
 */
export function* uploadLost({ accountId, uploadId, token, attempt }: LostAssembly): Steps<"open" | "joining" | "gone"> {
  yield* lockAccount(accountId);
  const upload = yield* uploadById(accountId, uploadId);
  if (!upload || upload.state === "done") return "gone";
  if (upload.state === "joining") {
    if (upload.attempt !== attempt) return "joining";
    yield* changes("UPDATE run_uploads SET state = 'open', owner = NULL, attempt = NULL WHERE id = $1", uploadId);
    yield* changeAccount(accountId, { reserved: -upload.size });
  }
  if (upload.token !== token) return "open";
  yield* changes("UPDATE run_uploads SET token = NULL WHERE id = $1", uploadId);
  yield* changes("DELETE FROM run_parts WHERE upload_id = $1", uploadId);
  return "open";
}
