/** The domain of accounts and their API keys. */

import { credit } from "../../charge/store/charges.ts";
import { LIMITS } from "../../limits.ts";
import { monthOf } from "../../std/calendar.ts";
import type { DomainOf, Slice } from "../../store/domain.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, rows, type Steps } from "../../store/steps.ts";
import type { Account, KeyRecord, NewAccount, NewKey, NoKeys, Revocation } from "./accounts-records.ts";

const ACCOUNT = `SELECT id, email, created_at, payment_method, verified, credits, settled, held, spend_limit, month, month_settled, password
  FROM accounts`;
const KEY = "SELECT public_id, sha256, account_id, name, created_at, last_used_at, revoked_at FROM api_keys";

const plain = recordOf<Omit<Account, "paymentMethod" | "verified">>("createdAt", "month");
const account = (row: Row): Account => ({
  ...plain(row),
  paymentMethod: row.payment_method === 1n,
  verified: row.verified === 1n,
});
const key = recordOf<KeyRecord>("createdAt", "lastUsedAt", "revokedAt");

export function* mayHaveKeys(accountId: string): Steps<"yes" | NoKeys> {
  const found = yield* first<{ funded: bigint; keys: bigint }>(
    `SELECT CASE WHEN payment_method = 1 OR credits - settled > 0 THEN 1 ELSE 0 END AS funded,
            (SELECT count(*) FROM api_keys WHERE account_id = $1 AND revoked_at IS NULL) AS keys
     FROM accounts WHERE id = $1`,
    accountId,
  );
  if (!found) return "account_unknown";
  if (BigInt(found.funded) === 0n) return "payment_required";
  return Number(found.keys) < LIMITS.accountKeysMax ? "yes" : "too_many";
}

function* accountByEmail(email: string): Steps<Account | undefined> {
  const row = yield* first<Row>(`${ACCOUNT} WHERE email = $1`, email);
  return row && account(row);
}

function* accountById(id: string): Steps<Account | undefined> {
  const row = yield* first<Row>(`${ACCOUNT} WHERE id = $1`, id);
  return row && account(row);
}

/** All accounts, ordered by id. */
export function* list(): Steps<readonly Account[]> {
  return (yield* rows<Row>(`${ACCOUNT} ORDER BY id`)).map(account);
}

function* keyByPublicId(publicId: string): Steps<KeyRecord | undefined> {
  const row = yield* first<Row>(`${KEY} WHERE public_id = $1`, publicId);
  return row && key(row);
}

/** The valid ones, then those revoked last; at most LIMITS.keysListedMax. */
function* keysOf(accountId: string): Steps<readonly KeyRecord[]> {
  const found = yield* rows<Row>(
    `${KEY} WHERE account_id = $1
     ORDER BY CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END, revoked_at DESC, created_at, public_id LIMIT ${LIMITS.keysListedMax}`,
    accountId,
  );
  return found.map(key);
}

/** Public ids of valid keys, those first that were used last. */
function* keysRecent(max: number): Steps<readonly string[]> {
  const found = yield* rows<{ public_id: string }>(
    `SELECT public_id FROM api_keys WHERE revoked_at IS NULL
     ORDER BY coalesce(last_used_at, created_at) DESC LIMIT $1`,
    max,
  );
  return found.map((row) => row.public_id);
}

/** Changes with every revocation. */
function* keysRevision(): Steps<bigint> {
  const row = yield* first<{ revision: bigint }>("SELECT revision FROM revisions WHERE name = 'keys'");
  return row?.revision ?? 0n;
}

export function* accountAdd(added: NewAccount): Steps<"added" | "email_taken"> {
  const inserted = yield* changes(
    `INSERT INTO accounts (id, email, created_at, payment_method, verified, spend_limit, password)
     VALUES ($id, $email, $createdAt, $paymentMethod, $verified, $spendLimit, $password) ON CONFLICT DO NOTHING`,
    { ...added, paymentMethod: added.paymentMethod ? 1 : 0, verified: added.verified ? 1 : 0 },
  );
  if (inserted === 0) {
    const known = yield* first<{ email: string }>("SELECT email FROM accounts WHERE id = $1", added.id);
    return known?.email === added.email ? "added" : "email_taken";
  }
  if (added.credit !== 0n) {
    const { id: accountId, credit: amount, createdAt: at } = added;
    yield* credit({ accountId, transferId: accountId, amount, at, month: monthOf(at) });
  }
  return "added";
}

export function* keyAdd(added: NewKey): Steps<"added" | "id_taken" | NoKeys> {
  // First, because a key that is added again counts among those of its account already.
  const before = yield* keyTaken(added);
  if (before) return before;
  const may = yield* mayHaveKeys(added.accountId);
  if (may !== "yes") return may;
  const inserted = yield* changes(
    `INSERT INTO api_keys (public_id, sha256, account_id, name, created_at)
     VALUES ($publicId, $sha256, $accountId, $name, $createdAt) ON CONFLICT DO NOTHING`,
    { ...added },
  );
  if (inserted === 1) return "added";
  // Another node added it between the two statements.
  return (yield* keyTaken(added)) ?? "id_taken";
}

/** The outcome for a key whose id exists; undefined where it does not. */
function* keyTaken({ publicId, sha256 }: NewKey): Steps<"added" | "id_taken" | undefined> {
  const known = yield* keyByPublicId(publicId);
  return known && (Buffer.compare(known.sha256, sha256) === 0 ? "added" : "id_taken");
}

export function* keyRevoke({ publicId, accountId, at }: Revocation): Steps<"revoked" | "unknown"> {
  const revoked = yield* changes(
    `UPDATE api_keys SET revoked_at = coalesce(revoked_at, $at)
     WHERE public_id = $publicId AND account_id = coalesce($accountId, account_id)`,
    { publicId, accountId, at },
  );
  if (revoked === 0) return "unknown";
  yield* changes("UPDATE revisions SET revision = revision + 1 WHERE name = 'keys'");
  return "revoked";
}

/** All that are valid. */
export function* keysRevoke({ accountId, at }: { accountId: string; at: number }): Steps<"revoked"> {
  yield* changes("UPDATE api_keys SET revoked_at = $at WHERE account_id = $accountId AND revoked_at IS NULL", {
    accountId,
    at,
  });
  yield* changes("UPDATE revisions SET revision = revision + 1 WHERE name = 'keys'");
  return "revoked";
}

/** Nodes write the uses of some seconds at once, in any order; a time that is later by more was shown by a clock that was ahead. */
const LATE_SECONDS = 60;

/** When keys were last used. Not durable. */
function* keysUsed(uses: readonly { publicId: string; at: number }[]): Steps<"done"> {
  for (const { publicId, at } of uses) {
    yield* changes(
      `UPDATE api_keys SET last_used_at = $2
       WHERE public_id = $1 AND (last_used_at IS NULL OR last_used_at < $2 OR last_used_at > $3)`,
      publicId,
      at,
      at + LATE_SECONDS,
    );
  }
  return "done";
}

function* spendLimit(set: { accountId: string; limit: bigint | undefined }): Steps<"changed" | "account_unknown"> {
  const changed = yield* changes("UPDATE accounts SET spend_limit = $limit WHERE id = $accountId", set);
  return changed === 1 ? "changed" : "account_unknown";
}

/** What an operator says of the account; undefined stays as it is. */
function* accountSet(set: {
  accountId: string;
  paymentMethod?: boolean | undefined;
  verified?: boolean | undefined;
}): Steps<"changed" | "account_unknown"> {
  const flag = (value: boolean | undefined) => (value === undefined ? null : Number(value));
  const changed = yield* changes(
    `UPDATE accounts SET payment_method = coalesce($paymentMethod, payment_method), verified = coalesce($verified, verified)
     WHERE id = $accountId`,
    { accountId: set.accountId, paymentMethod: flag(set.paymentMethod), verified: flag(set.verified) },
  );
  return changed === 1 ? "changed" : "account_unknown";
}

const reads = { mayHaveKeys, accountByEmail, accountById, list, keyByPublicId, keysOf, keysRecent, keysRevision };

const writes = { accountAdd, keyAdd, keyRevoke, keysRevoke, keysUsed, spendLimit, accountSet };

export const accounts = {
  reads,
  writes,
  notDurable: ["keysUsed"],
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type AccountStore = Slice<typeof accounts>;
