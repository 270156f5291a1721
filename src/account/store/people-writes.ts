/** Writes of people: links, sign-ins, throttling; those of device logins stand beside it. */
import { present } from "../../std/assert.ts";
import { changes, first, type Steps } from "../../store/steps.ts";
import { keysRevoke } from "./accounts-writes.ts";
import { linkByToken } from "./people-reads.ts";
import type { Link, LinkUse, PasswordChange, PasswordReset, SignIn } from "./people-records.ts";

export * from "./device-logins.ts";
export * from "./identities.ts";

/** Operator links replace each other. */
export function* linkAdd(link: Link): Steps<"added"> {
  if (link.kind === "operator") yield* changes("DELETE FROM links WHERE kind = 'operator'");
  yield* changes(
    `INSERT INTO links (token_sha256, kind, account_id, expires_at)
     VALUES ($tokenSha256, $kind, $accountId, $expiresAt) ON CONFLICT DO NOTHING`,
    { ...link },
  );
  return "added";
}

export function* linkRedeem(use: LinkUse): Steps<{ readonly accountId: string } | "link_unknown" | "email_taken"> {
  const link = yield* linkByToken(use);
  if (!link) return yield* redeemedBefore(use);
  if (link.accountId === undefined) {
    const owned = yield* first("SELECT id FROM accounts WHERE email = $1 AND password IS NOT NULL", use.email);
    if (owned) return "email_taken";
  }
  // The use that deletes the row redeems the link.
  const taken = yield* changes("DELETE FROM links WHERE token_sha256 = $1", use.tokenSha256);
  if (taken === 0) return yield* redeemedBefore(use);
  const accountId = link.accountId ?? (yield* operatorAccount(use));
  yield* changes("UPDATE accounts SET password = $2 WHERE id = $1", accountId, use.password);
  yield* changes("DELETE FROM sign_ins WHERE account_id = $1", accountId);
  yield* changes("DELETE FROM links WHERE account_id = $1", accountId);
  if (use.revokeKeys) yield* wayInEnd({ accountId, at: use.createdAt });
  return { accountId };
}

/** A repeat after a lost answer: the hash is salted, so only the same use can have set it. */
function* redeemedBefore({ email, password }: LinkUse): Steps<{ readonly accountId: string } | "link_unknown"> {
  const text = 'SELECT id AS "accountId" FROM accounts WHERE email = $1 AND password = $2';
  return (yield* first<{ accountId: string }>(text, email, password)) ?? "link_unknown";
}

/** The account of that e-mail, which has no password yet, or a new one. */
function* operatorAccount(use: LinkUse): Steps<string> {
  yield* changes(
    "INSERT INTO accounts (id, email, created_at, verified) VALUES ($newAccountId, $email, $createdAt, 1) ON CONFLICT DO NOTHING",
    { newAccountId: use.newAccountId, email: use.email, createdAt: use.createdAt },
  );
  return present(yield* first<{ id: string }>("SELECT id FROM accounts WHERE email = $1", use.email), "the account").id;
}

/** Ends the account's other sign-ins, its links, and its keys if that was asked for. */
export function* passwordSet(change: PasswordChange): Steps<"changed"> {
  yield* changes("UPDATE accounts SET password = $2 WHERE id = $1", change.accountId, change.password);
  yield* changes("DELETE FROM sign_ins WHERE account_id = $accountId AND token_sha256 <> $keepSignIn", {
    accountId: change.accountId,
    keepSignIn: change.keepSignIn,
  });
  yield* changes("DELETE FROM links WHERE account_id = $1", change.accountId);
  if (change.revokeKeys) yield* wayInEnd({ accountId: change.accountId, at: change.now });
  return "changed";
}

/** Who asks to have the keys revoked fears that somebody else was in: what the account was connected with is no way in any more. */
function* wayInEnd(end: { accountId: string; at: number }): Steps<void> {
  yield* keysRevoke(end);
  yield* changes("DELETE FROM identities WHERE account_id = $1", end.accountId);
}

/** At once: whoever knows the old password, or is signed in, is out; the link lets its owner in again. */
export function* passwordReset({ link, password, revokeKeys, now }: PasswordReset): Steps<"reset"> {
  const { accountId } = link;
  yield* changes("UPDATE accounts SET password = $2 WHERE id = $1", accountId, password);
  yield* changes("DELETE FROM sign_ins WHERE account_id = $1", accountId);
  yield* changes("DELETE FROM links WHERE account_id = $1", accountId);
  // Whatever becomes of the keys: an operator resets what its owner has lost hold of.
  yield* changes("DELETE FROM identities WHERE account_id = $1", accountId);
  if (revokeKeys) yield* keysRevoke({ accountId, at: now });
  yield* linkAdd(link);
  return "reset";
}

/** Only as long as `password`, the hash that was verified, is that of the account. */
export function* signInAdd(signIn: SignIn & { readonly password: string }): Steps<"added" | "password_changed"> {
  const same = "SELECT id FROM accounts WHERE id = $accountId AND password = $password FOR NO KEY UPDATE";
  if (!(yield* first(same, { ...signIn }))) return "password_changed";
  yield* changes(
    `INSERT INTO sign_ins (token_sha256, account_id, method, created_at, proved_at, expires_at)
     VALUES ($tokenSha256, $accountId, $method, $createdAt, $provedAt, $expiresAt) ON CONFLICT DO NOTHING`,
    { ...signIn },
  );
  return "added";
}

/** The person has proved again to be the one who signed in. */
export function* signInProve({ tokenSha256, at }: { tokenSha256: Uint8Array; at: number }): Steps<"proved"> {
  yield* changes("UPDATE sign_ins SET proved_at = $2 WHERE token_sha256 = $1", tokenSha256, at);
  return "proved";
}

export function* signInRemove({ tokenSha256 }: { tokenSha256: Uint8Array }): Steps<"removed"> {
  yield* changes("DELETE FROM sign_ins WHERE token_sha256 = $1", tokenSha256);
  return "removed";
}

/** Counts one attempt; refused once there were `max` in the window. Not durable. */
export function* attempt(tried: {
  name: string;
  max: number;
  windowSeconds: number;
  now: number;
}): Steps<"allowed" | { readonly refusedSeconds: number }> {
  const { name, max, windowSeconds, now } = tried;
  const resetsAt = now + windowSeconds;
  const row = yield* first<{ count: bigint; resets_at: bigint }>(
    `INSERT INTO attempts (name, count, resets_at) VALUES ($name, 1, $resetsAt)
     ON CONFLICT (name) DO UPDATE SET
       count = CASE WHEN attempts.resets_at <= $now THEN 1 ELSE attempts.count + 1 END,
       resets_at = CASE WHEN attempts.resets_at <= $now THEN excluded.resets_at ELSE attempts.resets_at END
     RETURNING count, resets_at`,
    { name, now, resetsAt },
  );
  if (!row || Number(row.count) <= max) return "allowed";
  return { refusedSeconds: Math.max(1, Number(row.resets_at) - now) };
}

export function* peopleForget({ now }: { now: number }): Steps<"done"> {
  for (const table of ["links", "sign_ins", "device_logins"]) {
    yield* changes(`DELETE FROM ${table} WHERE expires_at <= $1`, now);
  }
  yield* changes("DELETE FROM attempts WHERE resets_at <= $1", now);
  return "done";
}
