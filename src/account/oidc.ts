/**
 * The operator's OpenID provider, by the authorization code flow with PKCE (RFC 7636). State and nonce are bound to the browser. The
 * library verifies the ID token: issuer, audience, nonce, signature, expiry.
 */
import type { Configuration } from "openid-client";
import type { OidcConfig } from "../config/oidc.ts";
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { PageRefusal } from "./errors.ts";
import { readEmail } from "./store/accounts.ts";

/** What the browser keeps until the person comes back. */
export interface Transaction {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface Identity {
  readonly issuer: string;
  /** The provider's id of the person, which it never gives to another one. */
  readonly subject: string;
  /** Verified by the provider. */
  readonly email: string;
  /** Unix seconds of the provider's own sign-in, if it says so. */
  readonly askedAt?: number;
}

/** The time limit of each answer of the provider. */
const ANSWER_SECONDS = 5;
/** The provider's description of itself is believed for this time. */
const KNOWN_MS = 3_600_000;
/** The pause after a failure, so that a provider that is down delays no page. */
const PAUSE_MS = 2_000;

/** The library is large, and few services have a provider: it is loaded with the first sign-in of that kind. */
const library = () => import("openid-client");

export class OidcProvider {
  private known: { readonly provider: Promise<Configuration | undefined>; readonly untilMs: number } | undefined;

  constructor(
    private readonly config: OidcConfig,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  get name(): string {
    return this.config.name;
  }

  /** The address to which the browser is sent, and what it keeps meanwhile. `anew`: the provider must ask, although it knows the browser. */
  async begin(
    redirectUri: string,
    anew: boolean,
  ): Promise<{ readonly url: string; readonly transaction: Transaction } | PageRefusal> {
    const provider = await this.provider();
    if (!provider) return this.down();
    const { randomState, randomNonce, randomPKCECodeVerifier, calculatePKCECodeChallenge, buildAuthorizationUrl } =
      await library();
    const transaction = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() };
    const url = buildAuthorizationUrl(provider, {
      redirect_uri: redirectUri,
      scope: this.config.scopes,
      state: transaction.state,
      nonce: transaction.nonce,
      code_challenge: await calculatePKCECodeChallenge(transaction.verifier),
      code_challenge_method: "S256",
      // With `max_age` the ID token says when the provider asked.
      ...(anew && { prompt: "login", max_age: String(LIMITS.signInFreshSeconds) }),
    });
    return { url: url.href, transaction };
  }

  /** `address`: the one to which the provider sent the browser back, with its query. */
  async finish(address: URL, { state, nonce, verifier }: Transaction): Promise<Identity | PageRefusal> {
    const denied = address.searchParams.get("error");
    if (denied !== null) {
      this.log.info("sign-in refused by the provider", { error: denied.slice(0, 64) });
      return new PageRefusal(`${this.name} did not sign you in. Try again, or sign in another way.`);
    }
    const provider = await this.provider();
    if (!provider) return this.down();
    try {
      const { authorizationCodeGrant, fetchUserInfo } = await library();
      const tokens = await authorizationCodeGrant(provider, address, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) return this.unproven("no ID token");
      // Many providers put the e-mail into the ID token only if their configuration says so.
      const known =
        claims.email === undefined ? await fetchUserInfo(provider, tokens.access_token, claims.sub) : claims;
      const email = readEmail(typeof known.email === "string" ? known.email : "");
      if (email === undefined) {
        return new PageRefusal(
          `${this.name} did not send your e-mail. Its administrator has to allow this service to read it.`,
        );
      }
      if (known.email_verified !== true) {
        return new PageRefusal(`${this.name} has not verified your e-mail. Verify it there, then sign in again.`);
      }
      const asked = claims.auth_time === undefined ? {} : { askedAt: claims.auth_time };
      return { issuer: claims.iss, subject: claims.sub, email, ...asked };
    } catch (error) {
      return this.unproven(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
    }
  }

  /** The first sign-in asks for it: the service starts without it. */
  private provider(): Promise<Configuration | undefined> {
    const nowMs = this.clock.monotonicMs();
    if (this.known && nowMs < this.known.untilMs) return this.known.provider;
    const provider = this.discover().catch((error: unknown) => {
      this.log.error("the OpenID provider does not answer", { issuer: this.config.issuer, reason: String(error) });
      this.known = { provider: Promise.resolve(undefined), untilMs: this.clock.monotonicMs() + PAUSE_MS };
      return undefined;
    });
    this.known = { provider, untilMs: nowMs + KNOWN_MS };
    return provider;
  }

  private async discover(): Promise<Configuration> {
    const { issuer, clientId, clientSecret } = this.config;
    const address = new URL(issuer);
    const insecure = address.protocol === "http:";
    const { allowInsecureRequests, discovery } = await library();
    return await discovery(address, clientId, clientSecret, undefined, {
      timeout: ANSWER_SECONDS,
      execute: insecure ? [allowInsecureRequests] : [],
    });
  }

  private down(): PageRefusal {
    return new PageRefusal(`${this.name} does not answer right now: try again in a moment.`, "unavailable", 2);
  }

  /** The log has the reason; the page must not help a person who forges answers. */
  private unproven(reason: string): PageRefusal {
    this.log.error("an answer of the OpenID provider was refused", { reason: reason.slice(0, 300) });
    return new PageRefusal(`The answer of ${this.name} could not be verified. Sign in again.`, "signInFailed");
  }
}
