/** Accounts and their keys. */
import { LIMITS } from "../limits.ts";
import { monthOf } from "../std/calendar.ts";
import { pay } from "./money.ts";
import { changes, first, rows, type Steps } from "./steps.ts";
import type { Account, KeyRecord, NewAccount, NewKey, NoKeys, Reads, Writes } from "./store.ts";

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

export function* accountAdd(added: NewAccount): Steps<ReturnType<Writes["accountAdd"]>> {
  const inserted = yield* changes(
    `INSERT INTO accounts (id, email, created_at, payment_method, spend_limit, password)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
    added.id,
    added.email,
    added.createdAt,
    added.paymentMethod ? 1 : 0,
    added.spendLimit ?? null,
    added.password ?? null,
  );
  if (inserted === 0) {
    const known = yield* first<{ email: string }>("SELECT email FROM accounts WHERE id = $1", added.id);
    return known?.email === added.email ? "added" : "email_taken";
  }
  if (added.credit !== 0n) {
    const { id: accountId, credit: amount, createdAt: at } = added;
    yield* pay({ accountId, transferId: accountId, amount, at, month: monthOf(at) });
  }
  return "added";
}

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

export function* keyAdd(added: NewKey): Steps<ReturnType<Writes["keyAdd"]>> {
  // First: the very key that is added again is one of those that its account has.
  const before = yield* keyTaken(added);
  if (before) return before;
  const may = yield* mayHaveKeys(added.accountId);
  if (may !== "yes") return may;
  const inserted = yield* changes(
    `INSERT INTO api_keys (public_id, sha256, account_id, name, created_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING`,
    added.publicId,
    added.sha256,
    added.accountId,
    added.name,
    added.createdAt,
  );
  if (inserted === 1) return "added";
  // Somebody else was faster between the two looks.
  return (yield* keyTaken(added)) ?? "id_taken";
}

/** What there is to say of a key whose id is there already. */
function* keyTaken({ publicId, sha256 }: NewKey): Steps<"added" | "id_taken" | undefined> {
  const known = yield* keyByPublicId(publicId);
  return known && (Buffer.compare(known.sha256, sha256) === 0 ? "added" : "id_taken");
}

export function* keyRevoke(revocation: Parameters<Writes["keyRevoke"]>[0]): Steps<"revoked" | "unknown"> {
  const revoked = yield* changes(
    `UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2)
     WHERE public_id = $1 AND account_id = coalesce($3, account_id)`,
    revocation.publicId,
    revocation.at,
    revocation.accountId ?? null,
  );
  if (revoked === 0) return "unknown";
  yield* changes("UPDATE revisions SET revision = revision + 1 WHERE name = 'keys'");
  return "revoked";
}

export function* keysUsed(uses: Parameters<Writes["keysUsed"]>[0]): Steps<"done"> {
  for (const { publicId, at } of uses) {
    yield* changes(
      "UPDATE api_keys SET last_used_at = $2 WHERE public_id = $1 AND (last_used_at IS NULL OR last_used_at < $2)",
      publicId,
      at,
    );
  }
  return "done";
}

export function* spendLimit({
  accountId,
  limit,
}: Parameters<Writes["spendLimit"]>[0]): Steps<"changed" | "account_unknown"> {
  const changed = yield* changes("UPDATE accounts SET spend_limit = $2 WHERE id = $1", accountId, limit ?? null);
  return changed === 1 ? "changed" : "account_unknown";
}

export function* accountByEmail(email: string): Steps<Account | undefined> {
  const row = yield* first<AccountRow>(`${ACCOUNT} WHERE email = $1`, email);
  return row && account(row);
}

export function* accountById(id: string): Steps<Account | undefined> {
  const row = yield* first<AccountRow>(`${ACCOUNT} WHERE id = $1`, id);
  return row && account(row);
}

export function* accounts(): Steps<readonly Account[]> {
  return (yield* rows<AccountRow>(`${ACCOUNT} ORDER BY id`)).map(account);
}

export function* keyByPublicId(publicId: string): Steps<KeyRecord | undefined> {
  const row = yield* first<KeyRow>(`${KEY} WHERE public_id = $1`, publicId);
  return row && key(row);
}

export function* keysOf(accountId: string): Steps<ReturnType<Reads["keysOf"]>> {
  const found = yield* rows<KeyRow>(
    `${KEY} WHERE account_id = $1
     ORDER BY CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END, revoked_at DESC, created_at, public_id LIMIT ${LIMITS.keysListedMax}`,
    accountId,
  );
  return found.map(key);
}

export function* keysRevision(): Steps<bigint> {
  const row = yield* first<{ revision: bigint }>("SELECT revision FROM revisions WHERE name = 'keys'");
  return row?.revision ?? 0n;
}
