/** Reads of accounts and their keys. */
import { LIMITS } from "../../limits.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { first, rows, type Steps } from "../../store/steps.ts";
import type { Account, KeyRecord, NoKeys } from "./accounts-records.ts";

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

export function* accountByEmail(email: string): Steps<Account | undefined> {
  const row = yield* first<Row>(`${ACCOUNT} WHERE email = $1`, email);
  return row && account(row);
}

export function* accountById(id: string): Steps<Account | undefined> {
  const row = yield* first<Row>(`${ACCOUNT} WHERE id = $1`, id);
  return row && account(row);
}

/** By id. */
export function* list(): Steps<readonly Account[]> {
  return (yield* rows<Row>(`${ACCOUNT} ORDER BY id`)).map(account);
}

export function* keyByPublicId(publicId: string): Steps<KeyRecord | undefined> {
  const row = yield* first<Row>(`${KEY} WHERE public_id = $1`, publicId);
  return row && key(row);
}

/** The valid ones, then those revoked last; at most LIMITS.keysListedMax. */
export function* keysOf(accountId: string): Steps<readonly KeyRecord[]> {
  const found = yield* rows<Row>(
    `${KEY} WHERE account_id = $1
     ORDER BY CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END, revoked_at DESC, created_at, public_id LIMIT ${LIMITS.keysListedMax}`,
    accountId,
  );
  return found.map(key);
}

/** Public ids of valid keys, those first that were used last. */
export function* keysRecent(max: number): Steps<readonly string[]> {
  const found = yield* rows<{ public_id: string }>(
    `SELECT public_id FROM api_keys WHERE revoked_at IS NULL
     ORDER BY coalesce(last_used_at, created_at) DESC LIMIT $1`,
    max,
  );
  return found.map((row) => row.public_id);
}

/** Changes with every revocation. */
export function* keysRevision(): Steps<bigint> {
  const row = yield* first<{ revision: bigint }>("SELECT revision FROM revisions WHERE name = 'keys'");
  return row?.revision ?? 0n;
}
