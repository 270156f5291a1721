/** Retention of charges, in bounded parts: expired holds are given back, old charges are summed up. */
import { changes, listed, rows, type Steps } from "../../store/steps.ts";
import type { Book } from "./settle.ts";

/** The maximum number of charges in one step: other writes wait for its end. */
const STEP_MAX = 256;

/** Gives back the money of holds that expired before. */
export function* holdsExpire({ before }: { before: number }): Steps<"done" | "more"> {
  const due = yield* locked(
    `SELECT id, account_id AS "accountId" FROM charges WHERE settled_at IS NULL AND expires_at < $1
     ORDER BY expires_at LIMIT ${STEP_MAX}`,
    before,
  );
  const these = `settled_at IS NULL AND id IN ${listed(1)}`;
  yield* changes(
    `UPDATE accounts SET held = accounts.held - gone.held
     FROM (SELECT account_id, SUM(held) AS held FROM charges WHERE ${these} GROUP BY account_id) AS gone
     WHERE accounts.id = gone.account_id`,
    due,
  );
  const released = yield* changes(`DELETE FROM charges WHERE ${these}`, due);
  return released < STEP_MAX ? "done" : "more";
}

/**
 * The ids of the charges that the text finds, as one list. Their accounts are locked in the order of their ids, so that the charges
 * stay as they are. The statements that follow do not find a charge that another node took before.
 */
function* locked(text: string, before: number): Steps<string> {
  const found = yield* rows<{ id: string; accountId: string }>(text, before);
  const accounts = new Set(found.map(({ accountId }) => accountId));
  yield* rows(
    `SELECT id FROM accounts WHERE id IN ${listed(1)} ORDER BY id FOR NO KEY UPDATE`,
    JSON.stringify([...accounts]),
  );
  return JSON.stringify(found.map(({ id }) => id));
}

/** Sums the charges that were settled before into one entry per account and month. */
export function* usageForget({ before }: { before: number }): Steps<"done" | "more"> {
  const old = yield* locked(
    `SELECT id, account_id AS "accountId" FROM charges WHERE settled_at < $1 ORDER BY settled_at LIMIT ${STEP_MAX}`,
    before,
  );
  for (const [book, sum] of [
    ["account", "-SUM(cost)"],
    ["revenue", "SUM(cost)"],
  ] satisfies [Book, string][]) {
    yield* changes(
      `INSERT INTO entries (transfer, book, kind, account_id, amount, month, at)
       SELECT 'forward.' || account_id || '.' || month, '${book}', 'forward', account_id, ${sum}, month, max(submitted_at)
       FROM charges WHERE id IN ${listed(1)} GROUP BY account_id, month
       ON CONFLICT (transfer, book) DO UPDATE SET amount = entries.amount + excluded.amount, at = excluded.at`,
      old,
    );
  }
  yield* changes(`DELETE FROM entries WHERE transfer IN ${listed(1)}`, old);
  const forgotten = yield* changes(`DELETE FROM charges WHERE id IN ${listed(1)}`, old);
  return forgotten < STEP_MAX ? "done" : "more";
}
