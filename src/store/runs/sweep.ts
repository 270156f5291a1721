/** Writes of the sweep, which takes what ended processes left, and counting. */
import { changes, listed, type Steps } from "../steps.ts";
import type { Metered } from "./records.ts";

/** Their bytes are removed. */
export function* blobsForget({ ids }: { readonly ids: readonly string[] }): Steps<"forgotten"> {
  yield* changes(`DELETE FROM run_blobs WHERE state = 'gone' AND id IN ${listed(1)}`, JSON.stringify(ids));
  return "forgotten";
}

/** Answers of finished uploads that nobody asks for any more. */
export function* uploadsForget({ before }: { readonly before: number }): Steps<"forgotten"> {
  const old = "state = 'done' AND expires_at < $1";
  yield* changes(`DELETE FROM run_parts WHERE upload_id IN (SELECT id FROM run_uploads WHERE ${old})`, before);
  yield* changes(`DELETE FROM run_uploads WHERE ${old}`, before);
  return "forgotten";
}

/** Adds what was counted since the last time. */
export function* runsMeter({ metered }: { readonly metered: readonly Metered[] }): Steps<"counted"> {
  // In one order, so that two nodes never wait for each other's rows.
  const inOrder = metered.toSorted((one, other) => (one.accountId < other.accountId ? -1 : 1));
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
