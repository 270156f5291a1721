/** Device logins (RFC 8628). Codes are kept as SHA-256 alone, 32 bytes; times are of seen time (std/seen-clock.ts). */
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, type Steps } from "../../store/steps.ts";
import { type KeyRefusal, keyAdd, keyRevoke, mayHaveKeys, type NewKey } from "./keys.ts";

export interface DeviceLogin {
  readonly deviceSha256: Uint8Array;
  readonly userCodeSha256: Uint8Array;
  readonly deviceName: string;
  readonly address: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly intervalSeconds: number;
}

/** The step by which `slow_down` makes the interval longer (RFC 8628, section 3.5). */
const SLOW_DOWN_SECONDS = 5;
/** Polls may come this much early: clocks of devices run fast (measured by others on WSL: 5 to 30 %). */
const EARLY_SECONDS = 1;

export function* deviceAdd(login: DeviceLogin): Steps<"added" | "code_taken"> {
  const added = yield* changes(
    `INSERT INTO device_logins
       (device_sha256, user_code_sha256, device_name, address, created_at, expires_at, interval_seconds, polled_at, state)
     VALUES ($deviceSha256, $userCodeSha256, $deviceName, $address, $createdAt, $expiresAt, $intervalSeconds, 0, 'pending')
     ON CONFLICT DO NOTHING`,
    { ...login },
  );
  if (added === 1) return "added";
  const known = yield* first(
    "SELECT 1 FROM device_logins WHERE device_sha256 = $deviceSha256 AND user_code_sha256 = $userCodeSha256",
    { ...login },
  );
  return known ? "added" : "code_taken";
}

const deviceLogin = recordOf<DeviceLogin>("createdAt", "expiresAt", "intervalSeconds");

export function* deviceByUserCode(which: { userCodeSha256: Uint8Array; now: number }): Steps<DeviceLogin | undefined> {
  const row = yield* first<Row>(
    `SELECT device_sha256, user_code_sha256, device_name, address, created_at, expires_at, interval_seconds
     FROM device_logins WHERE user_code_sha256 = $userCodeSha256 AND expires_at > $now AND state = 'pending'`,
    which,
  );
  return row && deviceLogin(row);
}

interface DeviceDecision {
  readonly userCodeSha256: Uint8Array;
  readonly approve: boolean;
  readonly accountId: string;
  readonly signInSha256: Uint8Array;
  readonly now: number;
}

/** Decides once: a repeat by the same sign-in gets the same answer, any other decision `gone`. */
export function* deviceDecide({ approve, ...decision }: DeviceDecision): Steps<"decided" | "gone"> {
  const fields = { ...decision, state: approve ? "approved" : "denied" };
  const decided = yield* changes(
    `UPDATE device_logins SET state = $state, account_id = $accountId, sign_in_sha256 = $signInSha256
     WHERE user_code_sha256 = $userCodeSha256 AND expires_at > $now AND state = 'pending'`,
    fields,
  );
  if (decided === 1) return "decided";
  const same = yield* first(
    `SELECT 1 FROM device_logins WHERE user_code_sha256 = $userCodeSha256 AND expires_at > $now
       AND account_id = $accountId AND sign_in_sha256 = $signInSha256
       AND (state = $state OR (state = 'granted' AND $state = 'approved'))`,
    fields,
  );
  return same ? "decided" : "gone";
}

/** `key` is added when the login is approved, with the device's name, to the account of the approving sign-in. */
interface DevicePolling {
  readonly deviceSha256: Uint8Array;
  readonly key: Omit<NewKey, "accountId" | "name">;
  readonly now: number;
}

type DevicePoll = KeyRefusal | "granted" | "unknown" | "expired" | "pending" | "slow_down" | "denied";

interface LoginState extends Pick<DeviceLogin, "deviceName" | "expiresAt" | "intervalSeconds"> {
  readonly state: "pending" | "approved" | "denied" | "granted";
  readonly polledAt: number;
  readonly accountId: string | undefined;
  readonly signedIn: string | undefined;
  readonly keyPublicId: string | undefined;
}

const polled = recordOf<LoginState>("expiresAt", "polledAt", "intervalSeconds");

export function* devicePoll(poll: DevicePolling): Steps<DevicePoll> {
  const row = yield* first<Row>(
    `SELECT state, device_name, device_logins.expires_at, polled_at, interval_seconds, device_logins.account_id,
            sign_ins.account_id AS signed_in, key_public_id
     FROM device_logins LEFT JOIN sign_ins ON sign_ins.token_sha256 = sign_in_sha256 AND sign_ins.expires_at > $2
     WHERE device_sha256 = $1`,
    poll.deviceSha256,
    poll.now,
  );
  if (!row) return "unknown";
  const login = polled(row);
  const { state, accountId } = login;
  if (login.expiresAt <= poll.now) return "expired";
  if (state === "granted") return yield* replayed(poll, login);
  if (state === "denied") return "denied";
  if (state === "pending") return yield* stillPending(poll, login);
  // The approval ends with the sign-in that gave it.
  if (accountId === undefined || login.signedIn !== accountId) return "denied";
  const may = yield* mayHaveKeys(accountId);
  if (may !== "yes") return may;
  // Single use: the poll that changes the row gets the key.
  const taken = yield* changes(
    "UPDATE device_logins SET state = 'granted', key_public_id = $2 WHERE device_sha256 = $1 AND state = 'approved'",
    poll.deviceSha256,
    poll.key.publicId,
  );
  // Another poll took it first; this one reads what that one wrote.
  if (taken === 0) return yield* devicePoll(poll);
  const added = yield* keyAdd({ ...poll.key, name: login.deviceName, accountId });
  return added === "added" ? "granted" : "unknown";
}

/**
 * A second poll after the key was granted means that another program has the code, or that the device did not get the key. The key is
 * revoked (RFC 6749, section 4.1.2).
 */
function* replayed({ deviceSha256, key }: DevicePolling, login: LoginState): Steps<DevicePoll> {
  const { keyPublicId = "" } = login;
  // This is the same poll again, after an answer that was lost.
  if (keyPublicId === key.publicId) return "granted";
  yield* keyRevoke({ publicId: keyPublicId, at: key.createdAt });
  yield* changes("DELETE FROM device_logins WHERE device_sha256 = $1", deviceSha256);
  return "unknown";
}

function* stillPending({ deviceSha256, now }: DevicePolling, login: LoginState): Steps<DevicePoll> {
  const early = now < login.polledAt + login.intervalSeconds - EARLY_SECONDS;
  yield* changes(
    "UPDATE device_logins SET polled_at = $2, interval_seconds = interval_seconds + $3 WHERE device_sha256 = $1",
    deviceSha256,
    now,
    early ? SLOW_DOWN_SECONDS : 0,
  );
  return early ? "slow_down" : "pending";
}
