/** Who sends a request, on every route that needs a key; decided before its body is read. */
import { authenticate, type Principal } from "../../account/authenticate.ts";
import { Failure } from "../../error/core.ts";
import { EVERY } from "../../error/every-route.ts";
import type { Service } from "../service.ts";

/** Failures: `missing_api_key`, `invalid_api_key`, `auth_unavailable`. */
export function principalOf(service: Service, request: Request): Promise<Principal | Failure> {
  return principalOfHeader(service, request.headers.get("authorization"));
}

/** For who stays: a key may be revoked meanwhile. */
export async function principalOfHeader(service: Service, authorization: string | null): Promise<Principal | Failure> {
  if (service.drills.strikes("auth_unavailable")) {
    return new Failure(EVERY.auth_unavailable, "the API key cannot be verified right now; retry with backoff", {
      retryAfterSeconds: 1,
    });
  }
  return await authenticate(authorization, service.keys);
}
