/** Who sends a request: the account of its key, on routes that need one. */
import type { Failure } from "../std/failure.ts";
import type { Origin } from "./origin.ts";

/** The account of a valid key. */
export interface Principal {
  readonly accountId: string;
  readonly keyPublicId: string;
}

/**
 * Reads an `Authorization` header. Failures: `missing_api_key`, `invalid_api_key`, `auth_unavailable`, and `rate_limited` where
 * unknown keys are counted by network. A socket calls it again without a network: its key may have been revoked since.
 */
export type Authenticate = (authorization: string | null, network?: () => string) => Promise<Principal | Failure>;

/** What a route's declaration says about its key. */
export interface KeyRule<Who extends Principal | undefined> {
  readonly needed: boolean;
  find(
    deps: { readonly authenticate: Authenticate },
    arrival: { readonly request: Request; readonly origin: Origin },
  ): Promise<Who | Failure>;
}

export const KEY: KeyRule<Principal> = {
  needed: true,
  find: (deps, { request, origin }) => deps.authenticate(request.headers.get("authorization"), () => origin.network),
};

export const NO_KEY: KeyRule<undefined> = { needed: false, find: async () => undefined };
