/**
 * The operator's OpenID provider: where a person is sent, and who came back. Authorization code flow with PKCE (RFC 7636); state and
 * nonce are bound to the browser. The library verifies the ID token: issuer, audience, nonce, signature, expiry.
 */
import type { Configuration } from "openid-client";
import type { OidcConfig } from "../config/oidc.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { readEmail } from "./email.ts";
import { type Identity, PageRefusal } from "./people.ts";

/** What the browser keeps until the person comes back. */
export interface Transaction {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE. */
  readonly verifier: string;
  /** The person must prove at the provider who they are, however recently they did. */
  readonly again: boolean;
}

/** How long ago the proof may be that is asked for again. */
const AGAIN_SECONDS = 60;
/** For each answer of the provider. */
const ANSWER_SECONDS = 5;
/** How long what the provider says of itself is believed. */
const KNOWN_MS = 3_600_000;
/** After a failure it is not asked again for so long: one that is down holds nobody up. */
const PAUSE_MS = 2_000;

/** Loaded when somebody signs in so: it is large, and few services have a provider. */
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

  /** Where to send the browser, and what it keeps meanwhile. */
  async begin(
    redirectUri: string,
    again: boolean,
  ): Promise<{ readonly url: string; readonly transaction: Transaction } | PageRefusal> {
    const provider = await this.provider();
    if (!provider) return this.down();
    const { randomState, randomNonce, randomPKCECodeVerifier, calculatePKCECodeChallenge, buildAuthorizationUrl } =
      await library();
    const transaction = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier(), again };
    const url = buildAuthorizationUrl(provider, {
      redirect_uri: redirectUri,
      scope: this.config.scopes,
      state: transaction.state,
      nonce: transaction.nonce,
      code_challenge: await calculatePKCECodeChallenge(transaction.verifier),
      code_challenge_method: "S256",
      ...(again ? { prompt: "login", max_age: String(AGAIN_SECONDS) } : {}),
    });
    return { url: url.href, transaction };
  }

  /** `address`: where the browser came back, as it was sent there, with what the provider added. */
  async finish(address: URL, { state, nonce, verifier, again }: Transaction): Promise<Identity | PageRefusal> {
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
        ...(again ? { maxAge: AGAIN_SECONDS } : {}),
      });
      const claims = tokens.claims();
      if (!claims) return this.unproven("no ID token");
      // Many providers put the e-mail into the ID token only where they are told to.
      const told = claims.email === undefined ? await fetchUserInfo(provider, tokens.access_token, claims.sub) : claims;
      const email = readEmail(typeof told.email === "string" ? told.email : "");
      if (email === undefined) {
        return new PageRefusal(
          `${this.name} did not tell your e-mail. Its administrator has to allow this service to read it.`,
        );
      }
      if (told.email_verified !== true) {
        return new PageRefusal(`${this.name} has not verified your e-mail. Verify it there, then sign in again.`);
      }
      return { issuer: claims.iss, subject: claims.sub, email };
    } catch (error) {
      return this.unproven(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
    }
  }

  /** Asked when somebody wants to sign in: the service starts without it. */
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

  /** The log says why; a page must not help who tries to forge an answer. */
  private unproven(reason: string): PageRefusal {
    this.log.error("an answer of the OpenID provider was refused", { reason: reason.slice(0, 300) });
    return new PageRefusal(`The answer of ${this.name} could not be verified. Sign in again.`, "signInFailed");
  }
}
