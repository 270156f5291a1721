/** Reads of accounts and their keys. */
import { LIMITS } from "../../limits.ts";
import { first, rows, type Steps } from "../steps.ts";
import type { Account, KeyRecord, NoKeys } from "./records.ts";

interface AccountRow {
  readonly id: string;
  readonly email: string;
  readonly created_at: bigint;
  readonly payment_method: bigint;
  readonly credits: bigint;
  readonly settled: bigint;
  readonly held: bigint;
  readonly spend_limit: bigint | null;
  readonly month: bigint;
  readonly month_settled: bigint;
  readonly password: string | null;
}

function account(row: AccountRow): Account {
  return {
    id: row.id,
    email: row.email,
    createdAt: Number(row.created_at),
    paymentMethod: row.payment_method === 1n,
    credits: row.credits,
    settled: row.settled,
    held: row.held,
    spendLimit: row.spend_limit ?? undefined,
    month: Number(row.month),
    monthSettled: row.month_settled,
    password: row.password ?? undefined,
  };
}

interface KeyRow {
  readonly public_id: string;
  readonly sha256: Uint8Array;
  readonly account_id: string;
  readonly name: string;
  readonly created_at: bigint;
  readonly last_used_at: bigint | null;
  readonly revoked_at: bigint | null;
}

function key(row: KeyRow): KeyRecord {
  const seconds = (at: bigint | null) => (at === null ? undefined : Number(at));
  return {
    publicId: row.public_id,
    sha256: new Uint8Array(row.sha256),
    accountId: row.account_id,
    name: row.name,
    createdAt: Number(row.created_at),
    lastUsedAt: seconds(row.last_used_at),
    revokedAt: seconds(row.revoked_at),
  };
}

const ACCOUNT = `SELECT id, email, created_at, payment_method, credits, settled, held, spend_limit, month, month_settled, password
  FROM accounts`;
const KEY = "SELECT public_id, sha256, account_id, name, created_at, last_used_at, revoked_at FROM api_keys";

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
  const row = yield* first<AccountRow>(`${ACCOUNT} WHERE email = $1`, email);
  return row && account(row);
}

export function* accountById(id: string): Steps<Account | undefined> {
  const row = yield* first<AccountRow>(`${ACCOUNT} WHERE id = $1`, id);
  return row && account(row);
}

/** By id. */
export function* list(): Steps<readonly Account[]> {
  return (yield* rows<AccountRow>(`${ACCOUNT} ORDER BY id`)).map(account);
}

export function* keyByPublicId(publicId: string): Steps<KeyRecord | undefined> {
  const row = yield* first<KeyRow>(`${KEY} WHERE public_id = $1`, publicId);
  return row && key(row);
}

/** The valid ones, then those revoked last; at most LIMITS.keysListedMax. */
export function* keysOf(accountId: string): Steps<readonly KeyRecord[]> {
  const found = yield* rows<KeyRow>(
    `${KEY} WHERE account_id = $1
     ORDER BY CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END, revoked_at DESC, created_at, public_id LIMIT ${LIMITS.keysListedMax}`,
    accountId,
  );
  return found.map(key);
}

/** Changes with every revocation. */
export function* keysRevision(): Steps<bigint> {
  const row = yield* first<{ revision: bigint }>("SELECT revision FROM revisions WHERE name = 'keys'");
  return row?.revision ?? 0n;
}
