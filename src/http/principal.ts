/** Who sends a request: the account of its key, on routes that need one. */
import { authenticate, type Guard, type Principal } from "../account/authenticate.ts";
import { EVERY } from "../std/every-route.ts";
import { Failure } from "../std/failure.ts";
import type { HttpDeps } from "./deps.ts";
import type { Arrival } from "./route.ts";

/** What a route's declaration says about its key. */
export interface KeyRule<Who extends Principal | undefined> {
  readonly needed: boolean;
  find(deps: HttpDeps, arrival: Arrival): Promise<Who | Failure>;
}

export const KEY: KeyRule<Principal> = {
  needed: true,
  find: (deps, { request, origin }) => {
    const guard = { tries: deps.unknownKeys, network: () => origin.network };
    return principalOf(deps, request.headers.get("authorization"), guard);
  },
};

export const NO_KEY: KeyRule<undefined> = { needed: false, find: async () => undefined };

/** Failures: `missing_api_key`, `invalid_api_key`, `rate_limited` (with a guard), `auth_unavailable`. A socket asks again: its key may be revoked meanwhile. */
export async function principalOf(
  { keys, authFails }: Pick<HttpDeps, "keys" | "authFails">,
  authorization: string | null,
  guard?: Guard,
): Promise<Principal | Failure> {
  if (authFails()) {
    return new Failure(EVERY.auth_unavailable, "the API key cannot be verified right now; retry with backoff", {
      retryAfterSeconds: 1,
    });
  }
  return await authenticate(authorization, keys, guard);
}
