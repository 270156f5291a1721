/** Reads the credential of a request: whose account it is. */
import { Failure } from "../error/core.ts";
import { EVERY } from "../error/every-route.ts";
import { StoreDown } from "../store/store.ts";
import { keyMatches, keyPublicId } from "./key.ts";
import type { Keys } from "./keys.ts";

/** The account of a valid key. */
export interface Principal {
  readonly accountId: string;
  readonly keyPublicId: string;
}

const REPLACE = "create a key with 'tendon login' and send it as 'Authorization: Bearer KEY'";

/** Reads an `Authorization` header. Failures: `missing_api_key`, `invalid_api_key`, `auth_unavailable`. */
export async function authenticate(header: string | null, keys: Keys): Promise<Principal | Failure> {
  const key = /^bearer +(\S.*)$/i.exec(header?.trim() ?? "")?.[1];
  if (key === undefined) return new Failure(EVERY.missing_api_key, `there is no API key; ${REPLACE}`);
  const publicId = keyPublicId(key);
  if (publicId === undefined) {
    return new Failure(
      EVERY.invalid_api_key,
      `the API key is not one of this service (mistyped or cut off?); ${REPLACE}`,
    );
  }
  const record = await keys.find(publicId);
  if (record instanceof StoreDown) {
    return new Failure(EVERY.auth_unavailable, "the API key cannot be verified right now; retry with backoff", {
      retryAfterSeconds: 1,
      detail: `store: ${record.reason}`,
    });
  }
  if (!record || record.revokedAt !== undefined || !keyMatches(key, record.sha256)) {
    return new Failure(EVERY.invalid_api_key, `the API key is unknown or revoked; ${REPLACE}`);
  }
  keys.used(publicId);
  return { accountId: record.accountId, keyPublicId: publicId };
}
