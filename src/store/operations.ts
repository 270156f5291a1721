/** The operations of the store in SQL. Guards stand in the statements, so none of them raises on what a caller may do. */
import type { Database } from "bun:sqlite";
import { chunkReads, chunkWrites } from "./chunks.ts";
import { changed, query } from "./statement.ts";
import type { Account, KeyRecord, Reads, Writes } from "./store.ts";

export function writesOn(db: Database): Writes {
  return {
    ...chunkWrites(db),

    accountAdd: ({ id, email, createdAt }) =>
      changed(
        db,
        "INSERT INTO accounts (id, email, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        id,
        email,
        createdAt,
      )
        ? "added"
        : "email_taken",

    keyAdd: (key) => {
      const known = query<{ id: string }>(db, "SELECT id FROM accounts WHERE id = $1").get(key.accountId);
      if (!known) return "account_unknown";
      return changed(
        db,
        `INSERT INTO api_keys (public_id, sha256, account_id, name, created_at, revoked_at)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
        key.publicId,
        key.sha256,
        key.accountId,
        key.name,
        key.createdAt,
        key.revokedAt,
      )
        ? "added"
        : "id_taken";
    },

    keyRevoke: ({ publicId, revokedAt }) =>
      changed(db, "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE public_id = $1", publicId, revokedAt)
        ? "revoked"
        : "unknown",
  };
}

export function readsOn(db: Database): Reads {
  return {
    ...chunkReads(db),

    accountByEmail: (email) =>
      query<Account>(db, `SELECT id, email, created_at AS "createdAt" FROM accounts WHERE email = $1`).get(email) ??
      undefined,

    keyByPublicId: (publicId) =>
      query<KeyRecord>(
        db,
        `SELECT public_id AS "publicId", sha256, account_id AS "accountId", name,
                created_at AS "createdAt", revoked_at AS "revokedAt"
         FROM api_keys WHERE public_id = $1`,
      ).get(publicId) ?? undefined,
  };
}
