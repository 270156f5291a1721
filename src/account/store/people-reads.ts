/** Reads of people: links, sign-ins, device logins that are still valid. */
import { type Row, recordOf } from "../../store/record.ts";
import { first, type Steps } from "../../store/steps.ts";
import type { DeviceLogin, Link, SignIn, TokenUse } from "./people-records.ts";

/** Whether nobody can sign in yet. */
export function* operatorMissing(): Steps<boolean> {
  return (yield* first<object>("SELECT id FROM accounts WHERE password IS NOT NULL LIMIT 1")) === undefined;
}

interface FoundLink extends Link {
  readonly email: string;
  /** Valid keys that an account has whose password is replaced. */
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

const signIn = recordOf<SignIn & { readonly email: string }>("createdAt", "provedAt", "expiresAt");

export function* signInByToken(use: TokenUse): Steps<(SignIn & { readonly email: string }) | undefined> {
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
export function* deviceByUserCode(which: { userCodeSha256: Uint8Array; now: number }): Steps<DeviceLogin | undefined> {
  const row = yield* first<Row>(
    `SELECT device_sha256, user_code_sha256, device_name, address, created_at, expires_at, interval_seconds
     FROM device_logins WHERE user_code_sha256 = $userCodeSha256 AND expires_at > $now AND state = 'pending'`,
    which,
  );
  return row && deviceLogin(row);
}
