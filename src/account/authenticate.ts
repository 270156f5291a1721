/** Finds the account of a request by its `Authorization` header. */
import type { Authenticate, Principal } from "../http/deps.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import type { Allowance } from "../std/quota.ts";
import { StoreDown } from "../store/store.ts";
import { keyMatches, keyPublicId } from "./key.ts";
import type { Keys } from "./keys.ts";

/**
 * The check of keys that the transport is given. `unknownKeys` counts unknown keys by the network that they come from; `authFails` is a
 * drill: whether keys cannot be verified now.
 */
export function authenticator(keys: Keys, unknownKeys: Allowance, authFails: () => boolean): Authenticate {
  return async (authorization, network) => {
    if (authFails() && sentKey(authorization) !== undefined) return unverified();
    return await authenticate(authorization, keys, network && { tries: unknownKeys, network });
  };
}

/** The count of a network's unknown keys. */
interface Guard {
  readonly tries: Allowance;
  /** The network is looked up only to count: a known key costs nothing here. */
  readonly network: () => string;
}

function sentKey(header: string | null): string | undefined {
  return /^bearer +(\S.*)$/i.exec(header?.trim() ?? "")?.[1];
}

const REPLACE = "create a key with 'tendon login' and send it as 'Authorization: Bearer KEY'";

/**
 * Failures: `missing_api_key`, `invalid_api_key`, `rate_limited`, `auth_unavailable`. A network that has sent too many wrong keys is
 * refused before the store is asked. A key that was valid before is exempt from that.
 */
export async function authenticate(header: string | null, keys: Keys, guard?: Guard): Promise<Principal | Failure> {
  const key = sentKey(header);
  if (key === undefined) return new Failure(EVERY.missing_api_key, `there is no API key; ${REPLACE}`);
  const publicId = keyPublicId(key);
  // A robot lab that comes back after a restart sends one key many times at once. That is one look-up, and no guessing.
  const isFree = publicId !== undefined && keys.isFree(publicId);
  const tooMany = isFree ? undefined : counted(guard);
  if (tooMany) return tooMany;
  if (publicId === undefined) {
    const message = `the API key is not one of this service (mistyped or cut off?); ${REPLACE}`;
    return new Failure(EVERY.invalid_api_key, message);
  }
  const record = await keys.find(publicId);
  if (record instanceof StoreDown) {
    if (!isFree) guard?.tries.giveBack(guard.network());
    return unverified(`store: ${record.reason}`);
  }
  if (!record || record.revokedAt !== undefined || !keyMatches(key, record.sha256)) {
    const invalid = new Failure(EVERY.invalid_api_key, `the API key is unknown or revoked; ${REPLACE}`);
    return (isFree ? counted(guard) : undefined) ?? invalid;
  }
  if (!isFree) guard?.tries.giveBack(guard.network());
  keys.used(publicId);
  return { accountId: record.accountId, keyPublicId: publicId };
}

function unverified(detail?: string): Failure {
  const message = "the API key cannot be verified right now; retry with backoff";
  return new Failure(EVERY.auth_unavailable, message, { retryAfterSeconds: 1, ...(detail && { detail }) });
}

/** Counts a key that is not known to be valid; the failure if there were too many. */
function counted(guard: Guard | undefined): Failure | undefined {
  const retryAfterSeconds = guard?.tries.take(guard.network());
  if (retryAfterSeconds === undefined) return undefined;
  const message = `too many unknown API keys came from this address; retry after ${retryAfterSeconds} s, with a valid key`;
  return new Failure(EVERY.rate_limited, message, { retryAfterSeconds });
}
