/** Reads of people: links, sign-ins, device logins that are still valid. */
import { first, type Steps } from "../steps.ts";
import type { DeviceLogin, Link, SignIn, TokenUse } from "./records.ts";

/** Whether nobody can sign in yet. */
export function* operatorMissing(): Steps<boolean> {
  return (yield* first<object>("SELECT id FROM accounts WHERE password IS NOT NULL LIMIT 1")) === undefined;
}

interface LinkRow {
  readonly kind: Link["kind"];
  readonly account_id: string | null;
  readonly expires_at: bigint;
  readonly email: string | null;
}

export function* linkByToken(which: TokenUse): Steps<(Link & { readonly email: string }) | undefined> {
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

interface SignInRow {
  readonly account_id: string;
  readonly email: string;
  readonly created_at: bigint;
  readonly expires_at: bigint;
}

export function* signInByToken(which: TokenUse): Steps<(SignIn & { readonly email: string }) | undefined> {
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
