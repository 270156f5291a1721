/**
 * People: one-time links, sign-ins, device logins, throttling. Tokens and codes are kept as SHA-256 alone, 32 bytes.
 * What a page needs of them besides is in `src/account/`.
 */
import { present } from "../std/assert.ts";
import { keyAdd, keyRevoke, mayHaveKeys } from "./accounts.ts";
import { changes, first, type Steps } from "./steps.ts";
import type { NoKeys, Writes } from "./store.ts";

export interface Link {
  readonly tokenSha256: Uint8Array;
  /** `operator`: makes the first account; `password`: sets the password of `accountId`. */
  readonly kind: "operator" | "password";
  readonly accountId: string | undefined;
  readonly expiresAt: number;
}

export interface Redeemed {
  readonly accountId: string;
}

export interface SignIn {
  readonly tokenSha256: Uint8Array;
  readonly accountId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** A device that asks for a key. */
export interface DeviceLogin {
  readonly deviceSha256: Uint8Array;
  readonly userCodeSha256: Uint8Array;
  /** As the device calls itself. */
  readonly deviceName: string;
  /** Where the request came from. */
  readonly address: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly intervalSeconds: number;
}

export type DevicePoll =
  | "unknown"
  | "expired"
  | "pending"
  | "slow_down"
  | "denied"
  | NoKeys
  | { readonly accountId: string };

/** What `slow_down` adds to the interval (RFC 8628, section 3.5). */
const SLOW_DOWN_SECONDS = 5;
/** Polls may come this much early: clocks of devices run fast (measured by others on WSL: 5 to 30 %). */
const EARLY_SECONDS = 1;

export function* operatorMissing(): Steps<boolean> {
  return (yield* first<object>("SELECT id FROM accounts WHERE password IS NOT NULL LIMIT 1")) === undefined;
}

export function* linkAdd(link: Link): Steps<"added"> {
  if (link.kind === "operator") yield* changes("DELETE FROM links WHERE kind = 'operator'");
  yield* changes(
    "INSERT INTO links (token_sha256, kind, account_id, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    link.tokenSha256,
    link.kind,
    link.accountId ?? null,
    link.expiresAt,
  );
  return "added";
}

interface LinkRow {
  readonly kind: Link["kind"];
  readonly account_id: string | null;
  readonly expires_at: bigint;
  readonly email: string | null;
}

export function* linkByToken(which: {
  tokenSha256: Uint8Array;
  now: number;
}): Steps<(Link & { readonly email: string }) | undefined> {
  const row = yield* first<LinkRow>(
    `SELECT kind, account_id, expires_at, email FROM links LEFT JOIN accounts ON accounts.id = links.account_id
     WHERE token_sha256 = $1 AND expires_at > $2`,
    which.tokenSha256,
    which.now,
  );
  if (!row) return undefined;
  const { kind, account_id, expires_at, email } = row;
  return {
    tokenSha256: which.tokenSha256,
    kind,
    accountId: account_id ?? undefined,
    expiresAt: Number(expires_at),
    email: email ?? "",
  };
}

export function* linkRedeem(
  use: Parameters<Writes["linkRedeem"]>[0],
): Steps<Redeemed | "link_unknown" | "email_taken"> {
  const link = yield* linkByToken(use);
  if (!link) return yield* redeemedBefore(use);
  if (link.accountId === undefined) {
    const owned = yield* first("SELECT id FROM accounts WHERE email = $1 AND password IS NOT NULL", use.email);
    if (owned) return "email_taken";
  }
  // Whoever takes the row redeems the link: a second one finds nothing.
  const taken = yield* changes("DELETE FROM links WHERE token_sha256 = $1", use.tokenSha256);
  if (taken === 0) return yield* redeemedBefore(use);
  const accountId = link.accountId ?? (yield* operatorAccount(use));
  yield* changes("UPDATE accounts SET password = $2 WHERE id = $1", accountId, use.password);
  yield* changes("DELETE FROM sign_ins WHERE account_id = $1", accountId);
  yield* changes("DELETE FROM links WHERE account_id = $1", accountId);
  return { accountId };
}

/** The hash is salted: only this very use can have set it, and then its answer was lost. */
function* redeemedBefore({ email, password }: Parameters<Writes["linkRedeem"]>[0]): Steps<Redeemed | "link_unknown"> {
  const account = yield* first<{ id: string }>(
    "SELECT id FROM accounts WHERE email = $1 AND password = $2",
    email,
    password,
  );
  return account ? { accountId: account.id } : "link_unknown";
}

/** The account of that e-mail, which nobody can sign in to yet, or a new one. */
function* operatorAccount({ email, newAccountId, now }: Parameters<Writes["linkRedeem"]>[0]): Steps<string> {
  yield* changes(
    "INSERT INTO accounts (id, email, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
    newAccountId,
    email,
    now,
  );
  return present(yield* first<{ id: string }>("SELECT id FROM accounts WHERE email = $1", email), "the account").id;
}

export function* passwordSet(change: Parameters<Writes["passwordSet"]>[0]): Steps<"changed"> {
  yield* changes("UPDATE accounts SET password = $2 WHERE id = $1", change.accountId, change.password);
  yield* changes(
    "DELETE FROM sign_ins WHERE account_id = $1 AND token_sha256 <> $2",
    change.accountId,
    change.keepSignIn,
  );
  yield* changes("DELETE FROM links WHERE account_id = $1", change.accountId);
  return "changed";
}

export function* signInAdd(signIn: Parameters<Writes["signInAdd"]>[0]): Steps<"added" | "password_changed"> {
  const { accountId, password } = signIn;
  const same = "SELECT id FROM accounts WHERE id = $1 AND password = $2 FOR NO KEY UPDATE";
  if (!(yield* first(same, accountId, password))) return "password_changed";
  yield* changes(
    `INSERT INTO sign_ins (token_sha256, account_id, created_at, expires_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT DO NOTHING`,
    signIn.tokenSha256,
    accountId,
    signIn.createdAt,
    signIn.expiresAt,
  );
  return "added";
}

export function* signInRemove({ tokenSha256 }: { tokenSha256: Uint8Array }): Steps<"removed"> {
  yield* changes("DELETE FROM sign_ins WHERE token_sha256 = $1", tokenSha256);
  return "removed";
}

interface SignInRow {
  readonly account_id: string;
  readonly email: string;
  readonly created_at: bigint;
  readonly expires_at: bigint;
}

export function* signInByToken(which: {
  tokenSha256: Uint8Array;
  now: number;
}): Steps<(SignIn & { readonly email: string }) | undefined> {
  const row = yield* first<SignInRow>(
    `SELECT account_id, email, sign_ins.created_at, expires_at FROM sign_ins JOIN accounts ON accounts.id = account_id
     WHERE token_sha256 = $1 AND expires_at > $2`,
    which.tokenSha256,
    which.now,
  );
  if (!row) return undefined;
  return {
    tokenSha256: which.tokenSha256,
    accountId: row.account_id,
    email: row.email,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
  };
}

export function* deviceAdd(login: DeviceLogin): Steps<"added" | "code_taken"> {
  const added = yield* changes(
    `INSERT INTO device_logins
       (device_sha256, user_code_sha256, device_name, address, created_at, expires_at, interval_seconds, polled_at, state)
     VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 'pending') ON CONFLICT DO NOTHING`,
    login.deviceSha256,
    login.userCodeSha256,
    login.deviceName,
    login.address,
    login.createdAt,
    login.expiresAt,
    login.intervalSeconds,
  );
  if (added === 1) return "added";
  const known = yield* first(
    "SELECT 1 FROM device_logins WHERE device_sha256 = $1 AND user_code_sha256 = $2",
    login.deviceSha256,
    login.userCodeSha256,
  );
  return known ? "added" : "code_taken";
}

interface DeviceRow {
  readonly device_sha256: Uint8Array;
  readonly device_name: string;
  readonly address: string;
  readonly created_at: bigint;
  readonly expires_at: bigint;
  readonly interval_seconds: bigint;
}

/** A login that still waits for its decision. */
export function* deviceByUserCode(which: { userCodeSha256: Uint8Array; now: number }): Steps<DeviceLogin | undefined> {
  const row = yield* first<DeviceRow>(
    `SELECT device_sha256, device_name, address, created_at, expires_at, interval_seconds FROM device_logins
     WHERE user_code_sha256 = $1 AND expires_at > $2 AND state = 'pending'`,
    which.userCodeSha256,
    which.now,
  );
  if (!row) return undefined;
  return {
    deviceSha256: new Uint8Array(row.device_sha256),
    userCodeSha256: which.userCodeSha256,
    deviceName: row.device_name,
    address: row.address,
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    intervalSeconds: Number(row.interval_seconds),
  };
}

/** Once: a login that was decided is not decided again, only told again to the sign-in that has decided it so. */
export function* deviceDecide(decision: Parameters<Writes["deviceDecide"]>[0]): Steps<"decided" | "gone"> {
  const decided = yield* changes(
    `UPDATE device_logins SET state = $2, account_id = $3, sign_in_sha256 = $4
     WHERE user_code_sha256 = $1 AND expires_at > $5 AND state = 'pending'`,
    decision.userCodeSha256,
    decision.approve ? "approved" : "denied",
    decision.accountId,
    decision.signInSha256,
    decision.now,
  );
  if (decided === 1) return "decided";
  const same = yield* first(
    `SELECT 1 FROM device_logins WHERE user_code_sha256 = $1 AND expires_at > $5 AND account_id = $3
       AND sign_in_sha256 = $4 AND (state = $2 OR (state = 'granted' AND $2 = 'approved'))`,
    decision.userCodeSha256,
    decision.approve ? "approved" : "denied",
    decision.accountId,
    decision.signInSha256,
    decision.now,
  );
  return same ? "decided" : "gone";
}

interface PolledRow {
  readonly device_name: string;
  readonly state: "pending" | "approved" | "denied" | "granted";
  readonly expires_at: bigint;
  readonly polled_at: bigint;
  readonly interval_seconds: bigint;
  readonly account_id: string | null;
  readonly signed_in: string | null;
  readonly key_public_id: string | null;
}

export function* devicePoll(poll: Parameters<Writes["devicePoll"]>[0]): Steps<DevicePoll> {
  const row = yield* first<PolledRow>(
    `SELECT state, device_name, device_logins.expires_at, polled_at, interval_seconds, device_logins.account_id,
            sign_ins.account_id AS signed_in, key_public_id
     FROM device_logins LEFT JOIN sign_ins ON sign_ins.token_sha256 = sign_in_sha256 AND sign_ins.expires_at > $2
     WHERE device_sha256 = $1`,
    poll.deviceSha256,
    poll.now,
  );
  if (!row) return "unknown";
  if (Number(row.expires_at) <= poll.now) return "expired";
  if (row.state === "granted") return yield* replayed(poll, row);
  if (row.state === "denied") return "denied";
  if (row.state === "pending") return yield* stillPending(poll, row);
  const { account_id: accountId } = row;
  // Bound to the sign-in that approved it: one that has ended approves nothing.
  if (accountId === null || row.signed_in !== accountId) return "denied";
  const may = yield* mayHaveKeys(accountId);
  if (may !== "yes") return may;
  // Single use: whoever changes the row gets the key.
  const taken = yield* changes(
    "UPDATE device_logins SET state = 'granted', key_public_id = $2 WHERE device_sha256 = $1 AND state = 'approved'",
    poll.deviceSha256,
    poll.key.publicId,
  );
  // Another question came first: this one finds what that one left.
  if (taken === 0) return yield* devicePoll(poll);
  const added = yield* keyAdd({ ...poll.key, name: row.device_name, accountId });
  return added === "added" ? { accountId } : "unknown";
}

/** Its device did not get the key, or somebody else has the code: the key ends either way (RFC 6749, section 4.1.2). */
function* replayed(
  { deviceSha256, key, now: at }: Parameters<Writes["devicePoll"]>[0],
  row: PolledRow,
): Steps<DevicePoll> {
  // This very question again, after an answer that was lost.
  if (row.account_id !== null && row.key_public_id === key.publicId) return { accountId: row.account_id };
  yield* keyRevoke({ publicId: row.key_public_id ?? "", at });
  yield* changes("DELETE FROM device_logins WHERE device_sha256 = $1", deviceSha256);
  return "unknown";
}

function* stillPending(
  { deviceSha256, now }: { deviceSha256: Uint8Array; now: number },
  row: PolledRow,
): Steps<DevicePoll> {
  const early = now < Number(row.polled_at) + Number(row.interval_seconds) - EARLY_SECONDS;
  yield* changes(
    "UPDATE device_logins SET polled_at = $2, interval_seconds = interval_seconds + $3 WHERE device_sha256 = $1",
    deviceSha256,
    now,
    early ? SLOW_DOWN_SECONDS : 0,
  );
  return early ? "slow_down" : "pending";
}

export function* attempt(
  tried: Parameters<Writes["attempt"]>[0],
): Steps<"allowed" | { readonly refusedSeconds: number }> {
  const { name, max, windowSeconds, now } = tried;
  const row = yield* first<{ count: bigint; resets_at: bigint }>(
    `INSERT INTO attempts (name, count, resets_at) VALUES ($1, 1, $2)
     ON CONFLICT (name) DO UPDATE SET
       count = CASE WHEN attempts.resets_at <= $3 THEN 1 ELSE attempts.count + 1 END,
       resets_at = CASE WHEN attempts.resets_at <= $3 THEN excluded.resets_at ELSE attempts.resets_at END
     RETURNING count, resets_at`,
    name,
    now + windowSeconds,
    now,
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
