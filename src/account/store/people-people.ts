/** The domain of people: one-time links, sign-ins, device logins, identities at providers, throttling. */
import { present } from "../../std/assert.ts";
import type { DomainOf, Slice } from "../../store/domain.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, type Steps } from "../../store/steps.ts";
import { keysRevoke } from "./accounts-accounts.ts";
import { deviceAdd, deviceDecide, devicePoll } from "./device-logins.ts";
import { identityEnter } from "./identities.ts";
import type { DeviceLogin, Link, LinkUse, PasswordChange, PasswordReset, SignIn, TokenUse } from "./people-records.ts";

/** Whether nobody can sign in yet. */
function* operatorMissing(): Steps<boolean> {
  return (yield* first<object>("SELECT id FROM accounts WHERE password IS NOT NULL LIMIT 1")) === undefined;
}

interface FoundLink extends Link {
  readonly email: string;
  /** Valid keys that an account has whose password is replaced. */
  readonly keys: number;
}

const link = recordOf<FoundLink>("expiresAt", "keys");

function* linkByToken(use: TokenUse): Steps<FoundLink | undefined> {
  const row = yield* first<Row>(
    `SELECT token_sha256, kind, links.account_id, expires_at, coalesce(email, '') AS email, CASE WHEN password IS NULL THEN 0 ELSE
       (SELECT count(*) FROM api_keys WHERE api_keys.account_id = links.account_id AND revoked_at IS NULL) END AS keys
     FROM links LEFT JOIN accounts ON accounts.id = links.account_id
     WHERE token_sha256 = $tokenSha256 AND expires_at > $now`,
    { ...use },
  );
  return row && link(row);
}

const signIn = recordOf<SignIn & { readonly email: string }>("createdAt", "provedAt", "expiresAt");

function* signInByToken(use: TokenUse): Steps<(SignIn & { readonly email: string }) | undefined> {
  const row = yield* first<Row>(
    `SELECT token_sha256, account_id, email, method, sign_ins.created_at, proved_at, expires_at
     FROM sign_ins JOIN accounts ON accounts.id = account_id
     WHERE token_sha256 = $tokenSha256 AND expires_at > $now`,
    { ...use },
  );
  return row && signIn(row);
}

const deviceLogin = recordOf<DeviceLogin>("createdAt", "expiresAt", "intervalSeconds");

/** A login that still waits for its decision. */
function* deviceByUserCode(which: { userCodeSha256: Uint8Array; now: number }): Steps<DeviceLogin | undefined> {
  const row = yield* first<Row>(
    `SELECT device_sha256, user_code_sha256, device_name, address, created_at, expires_at, interval_seconds
     FROM device_logins WHERE user_code_sha256 = $userCodeSha256 AND expires_at > $now AND state = 'pending'`,
    which,
  );
  return row && deviceLogin(row);
}

/** Operator links replace each other. */
function* linkAdd(link: Link): Steps<"added"> {
  if (link.kind === "operator") yield* changes("DELETE FROM links WHERE kind = 'operator'");
  yield* changes(
    `INSERT INTO links (token_sha256, kind, account_id, expires_at)
     VALUES ($tokenSha256, $kind, $accountId, $expiresAt) ON CONFLICT DO NOTHING`,
    { ...link },
  );
  return "added";
}

function* linkRedeem(use: LinkUse): Steps<{ readonly accountId: string } | "link_unknown" | "email_taken"> {
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
function* passwordSet(change: PasswordChange): Steps<"changed"> {
  yield* changes("UPDATE accounts SET password = $2 WHERE id = $1", change.accountId, change.password);
  yield* changes("DELETE FROM sign_ins WHERE account_id = $accountId AND token_sha256 <> $keepSignIn", {
    accountId: change.accountId,
    keepSignIn: change.keepSignIn,
  });
  yield* changes("DELETE FROM links WHERE account_id = $1", change.accountId);
  if (change.revokeKeys) yield* wayInEnd({ accountId: change.accountId, at: change.now });
  return "changed";
}

/** A person who revokes the keys fears that somebody else was in. So the connections with providers end too. */
function* wayInEnd(end: { accountId: string; at: number }): Steps<void> {
  yield* keysRevoke(end);
  yield* changes("DELETE FROM identities WHERE account_id = $1", end.accountId);
}

/** The old password and all sign-ins end at once; the link lets the owner in again. */
function* passwordReset({ link, password, revokeKeys, now }: PasswordReset): Steps<"reset"> {
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
function* signInAdd(signIn: SignIn & { readonly password: string }): Steps<"added" | "password_changed"> {
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
function* signInProve({ tokenSha256, at }: { tokenSha256: Uint8Array; at: number }): Steps<"proved"> {
  yield* changes("UPDATE sign_ins SET proved_at = $2 WHERE token_sha256 = $1", tokenSha256, at);
  return "proved";
}

function* signInRemove({ tokenSha256 }: { tokenSha256: Uint8Array }): Steps<"removed"> {
  yield* changes("DELETE FROM sign_ins WHERE token_sha256 = $1", tokenSha256);
  return "removed";
}

/** Counts one attempt; refused once there were `max` in the window. Not durable. */
function* attempt(tried: {
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

function* peopleForget({ now }: { now: number }): Steps<"done"> {
  for (const table of ["links", "sign_ins", "device_logins"]) {
    yield* changes(`DELETE FROM ${table} WHERE expires_at <= $1`, now);
  }
  yield* changes("DELETE FROM attempts WHERE resets_at <= $1", now);
  return "done";
}

const reads = { operatorMissing, linkByToken, signInByToken, deviceByUserCode };

const writes = {
  linkAdd,
  linkRedeem,
  passwordSet,
  passwordReset,
  signInAdd,
  signInProve,
  signInRemove,
  attempt,
  peopleForget,
  deviceAdd,
  deviceDecide,
  devicePoll,
  identityEnter,
};

export const people = {
  reads,
  writes,
  notDurable: ["attempt"],
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type PeopleStore = Slice<typeof people>;
