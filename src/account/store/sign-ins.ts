/** Sign-ins: with the account's password, or as a person whom an OpenID provider knows (identities.ts). Tokens are kept as SHA-256 alone, 32 bytes. */
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, type Steps } from "../../store/steps.ts";

/** Times are of seen time (std/seen-clock.ts). */
export interface NewSignIn {
  readonly tokenSha256: Uint8Array;
  readonly accountId: string;
  readonly at: number;
  /** When the person proved who it is; undefined: just now. */
  readonly provedAt?: number;
  readonly expiresAt: number;
}

interface SignIn {
  readonly accountId: string;
  readonly email: string;
  /** The last proof that the person is the one who signed in. */
  readonly provedAt: number;
  /** The ways in which the person can prove it again. */
  readonly hasPassword: boolean;
  readonly hasIdentity: boolean;
}

export interface TokenUse {
  readonly tokenSha256: Uint8Array;
  /** Seen time. */
  readonly now: number;
}

const plain = recordOf<Omit<SignIn, "hasPassword" | "hasIdentity">>("provedAt");

export function* signInByToken(use: TokenUse): Steps<SignIn | undefined> {
  const row = yield* first<Row>(
    `SELECT account_id, email, proved_at, CASE WHEN password IS NULL THEN 0 ELSE 1 END AS has_password,
       CASE WHEN EXISTS (SELECT 1 FROM identities WHERE identities.account_id = accounts.id) THEN 1 ELSE 0 END AS has_identity
     FROM sign_ins JOIN accounts ON accounts.id = account_id
     WHERE token_sha256 = $tokenSha256 AND expires_at > $now`,
    { ...use },
  );
  if (!row) return undefined;
  const { has_password: password, has_identity: identity, ...rest } = row;
  return { ...plain(rest), hasPassword: Number(password) === 1, hasIdentity: Number(identity) === 1 };
}

/** Adds nothing once the account has another hash than `password`, which was verified. */
export function* signInAdd(added: NewSignIn & { readonly password: string }): Steps<"added" | "password_changed"> {
  const same = "SELECT id FROM accounts WHERE id = $accountId AND password = $password FOR NO KEY UPDATE";
  if (!(yield* first(same, { ...added }))) return "password_changed";
  yield* addSignIn(added, "password");
  return "added";
}

export function* addSignIn(added: NewSignIn, method: "password" | "provider"): Steps<void> {
  yield* changes(
    `INSERT INTO sign_ins (token_sha256, account_id, method, created_at, proved_at, expires_at)
     VALUES ($tokenSha256, $accountId, $method, $at, $provedAt, $expiresAt) ON CONFLICT DO NOTHING`,
    { provedAt: added.at, ...added, method },
  );
}

export function* signInProve({ tokenSha256, at }: { tokenSha256: Uint8Array; at: number }): Steps<"proved"> {
  yield* changes("UPDATE sign_ins SET proved_at = $2 WHERE token_sha256 = $1", tokenSha256, at);
  return "proved";
}

export function* signInRemove({ tokenSha256 }: { tokenSha256: Uint8Array }): Steps<"removed"> {
  yield* changes("DELETE FROM sign_ins WHERE token_sha256 = $1", tokenSha256);
  return "removed";
}
