/** One-time links, and the passwords that they set. Every new password ends the account's other ways in. */
import { present } from "../../std/assert.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, type Steps } from "../../store/steps.ts";
import { keysRevoke } from "./keys.ts";
import type { TokenUse } from "./sign-ins.ts";

export interface Link {
  readonly tokenSha256: Uint8Array;
  /** `operator`: makes the first account; `password`: sets the password of `accountId`. */
  readonly kind: "operator" | "password";
  readonly accountId: string | undefined;
  /** Seen time. */
  readonly expiresAt: number;
}

interface FoundLink extends Link {
  readonly email: string;
  /** Valid keys of an account whose password is replaced. */
  readonly keys: number;
}

const link = recordOf<FoundLink>("expiresAt", "keys");

export function* linkByToken(use: TokenUse): Steps<FoundLink | undefined> {
  const row = yield* first<Row>(
    `SELECT token_sha256, kind, links.account_id, expires_at, coalesce(email, '') AS email, CASE WHEN password IS NULL THEN 0 ELSE
       (SELECT count(*) FROM api_keys WHERE api_keys.account_id = links.account_id AND revoked_at IS NULL) END AS keys
     FROM links LEFT JOIN accounts ON accounts.id = links.account_id
     WHERE token_sha256 = $tokenSha256 AND expires_at > $now`,
    { ...use },
  );
  return row && link(row);
}

/** Operator links replace each other. */
export function* linkAdd(added: Link): Steps<"added"> {
  if (added.kind === "operator") yield* changes("DELETE FROM links WHERE kind = 'operator'");
  yield* changes(
    `INSERT INTO links (token_sha256, kind, account_id, expires_at)
     VALUES ($tokenSha256, $kind, $accountId, $expiresAt) ON CONFLICT DO NOTHING`,
    { ...added },
  );
  return "added";
}

interface LinkUse extends TokenUse {
  readonly newAccountId: string;
  /** Creation of the new account, by the wall clock. */
  readonly createdAt: number;
  readonly email: string;
  readonly password: string;
  /** Whether the account's keys end with its old password. */
  readonly revokeKeys: boolean;
}

export function* linkRedeem(use: LinkUse): Steps<{ readonly accountId: string } | "link_unknown" | "email_taken"> {
  const found = yield* linkByToken(use);
  if (!found) return yield* redeemedBefore(use);
  if (found.accountId === undefined) {
    const owned = yield* first("SELECT id FROM accounts WHERE email = $1 AND password IS NOT NULL", use.email);
    if (owned) return "email_taken";
  }
  // The use that deletes the row redeems the link.
  const taken = yield* changes("DELETE FROM links WHERE token_sha256 = $1", use.tokenSha256);
  if (taken === 0) return yield* redeemedBefore(use);
  const accountId = found.accountId ?? (yield* operatorAccount(use));
  yield* passwordSet({ ...use, accountId, now: use.createdAt });
  return { accountId };
}

/** A repeat after a lost answer: the hash is salted, so only the same use can have set it. */
function* redeemedBefore({ email, password }: LinkUse): Steps<{ readonly accountId: string } | "link_unknown"> {
  const text = 'SELECT id AS "accountId" FROM accounts WHERE email = $1 AND password = $2';
  return (yield* first<{ accountId: string }>(text, email, password)) ?? "link_unknown";
}

/** The account of the e-mail, which has no password yet, or a new one. */
function* operatorAccount({ newAccountId, email, createdAt }: LinkUse): Steps<string> {
  yield* changes(
    "INSERT INTO accounts (id, email, created_at, verified) VALUES ($newAccountId, $email, $createdAt, 1) ON CONFLICT DO NOTHING",
    { newAccountId, email, createdAt },
  );
  return present(yield* first<{ id: string }>("SELECT id FROM accounts WHERE email = $1", email), "the account").id;
}

interface PasswordChange {
  readonly accountId: string;
  readonly password: string;
  /** The sign-in of the person who sets the password: all others of the account end. */
  readonly keepSignIn?: Uint8Array;
  readonly revokeKeys: boolean;
  readonly now: number;
}

/** The account's links and sign-ins end, and where it is chosen its keys. */
export function* passwordSet(change: PasswordChange): Steps<"changed"> {
  const { accountId, password, keepSignIn, revokeKeys, now } = change;
  yield* changes("UPDATE accounts SET password = $2 WHERE id = $1", accountId, password);
  yield* changes("DELETE FROM sign_ins WHERE account_id = $accountId AND token_sha256 IS DISTINCT FROM $keepSignIn", {
    accountId,
    keepSignIn,
  });
  yield* changes("DELETE FROM links WHERE account_id = $1", accountId);
  if (!revokeKeys) return "changed";
  yield* keysRevoke({ accountId, at: now });
  // A person who revokes the keys fears an intruder. So the connections with providers end too.
  yield* identitiesEnd(accountId);
  return "changed";
}

/** An operator's reset: no person knows `password`, and the link sets another one. */
interface PasswordReset extends Pick<PasswordChange, "password" | "revokeKeys" | "now"> {
  readonly link: Link & { readonly accountId: string };
}

/** The old password and all sign-ins end at once; the link lets the owner in again. */
export function* passwordReset({ link, ...reset }: PasswordReset): Steps<"reset"> {
  const { accountId } = link;
  yield* passwordSet({ ...reset, accountId });
  // The connections with providers always end: an operator resets an account that its owner has lost control of.
  yield* identitiesEnd(accountId);
  yield* linkAdd(link);
  return "reset";
}

function* identitiesEnd(accountId: string): Steps<void> {
  yield* changes("DELETE FROM identities WHERE account_id = $1", accountId);
}
