/** Operations on API keys. The store has the public id and the SHA-256 of a key. */
import { LIMITS } from "../../limits.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, rows, type Steps } from "../../store/steps.ts";

export interface KeyRecord {
  readonly publicId: string;
  /** SHA-256 of the whole key, 32 bytes. */
  readonly sha256: Uint8Array;
  readonly accountId: string;
  readonly name: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | undefined;
  /** undefined while the key is valid. */
  readonly revokedAt: number | undefined;
}

export type NewKey = Omit<KeyRecord, "lastUsedAt" | "revokedAt">;

/** Reasons against a further key: the account has neither payment method nor credit, or the maximum number of keys. */
export type KeyRefusal = "account_unknown" | "payment_required" | "too_many";

const KEY = "SELECT public_id, sha256, account_id, name, created_at, last_used_at, revoked_at FROM api_keys";
const key = recordOf<KeyRecord>("createdAt", "lastUsedAt", "revokedAt");

export function* mayHaveKeys(accountId: string): Steps<"yes" | KeyRefusal> {
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

/** Public ids of valid keys, the most recently used first. */
export function* keysRecent(max: number): Steps<readonly string[]> {
  const found = yield* rows<{ public_id: string }>(
    `SELECT public_id FROM api_keys WHERE revoked_at IS NULL
     ORDER BY coalesce(last_used_at, created_at) DESC LIMIT $1`,
    max,
  );
  return found.map((row) => row.public_id);
}

/** A number that changes with every revocation. */
export function* keysRevision(): Steps<bigint> {
  const row = yield* first<{ revision: bigint }>("SELECT revision FROM revisions WHERE name = 'keys'");
  return row?.revision ?? 0n;
}

export function* keyAdd(added: NewKey): Steps<"added" | "id_taken" | KeyRefusal> {
  // The number of keys is checked later: a key that is added again is already among those of its account.
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

/** The outcome for a key whose id is taken; undefined for a free id. */
function* keyTaken({ publicId, sha256 }: NewKey): Steps<"added" | "id_taken" | undefined> {
  const known = yield* keyByPublicId(publicId);
  return known && (Buffer.compare(known.sha256, sha256) === 0 ? "added" : "id_taken");
}

const REVISE = "UPDATE revisions SET revision = revision + 1 WHERE name = 'keys'";

/** `accountId`, if given, is the account that must have the key. */
export function* keyRevoke(which: {
  publicId: string;
  accountId?: string | undefined;
  at: number;
}): Steps<"revoked" | "unknown"> {
  const revoked = yield* changes(
    `UPDATE api_keys SET revoked_at = coalesce(revoked_at, $at)
     WHERE public_id = $publicId AND account_id = coalesce($accountId, account_id)`,
    { accountId: undefined, ...which },
  );
  if (revoked === 0) return "unknown";
  yield* changes(REVISE);
  return "revoked";
}

export function* keysRevoke(which: { accountId: string; at: number }): Steps<void> {
  yield* changes("UPDATE api_keys SET revoked_at = $at WHERE account_id = $accountId AND revoked_at IS NULL", which);
  yield* changes(REVISE);
}

/** Nodes write the uses of some seconds at once, in any order. A stored time that is later by more came from a clock that was ahead. */
const LATE_SECONDS = 60;

export function* keysUsed(uses: readonly { publicId: string; at: number }[]): Steps<"done"> {
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
