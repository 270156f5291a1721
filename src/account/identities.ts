/** Identities at the operator's OpenID provider: sign-in by one, proof anew, connecting with an account and disconnecting. */
import { LIMITS } from "../limits.ts";
import { unixSeconds } from "../std/clock.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { PageRefusal, unavailable } from "./errors.ts";
import type { Identity } from "./oidc.ts";
import type { PeopleOptions, Person } from "./people.ts";
import { makeToken, sha256 } from "./secret.ts";
import type { ConnectedIdentity, IdentityKey } from "./store/identities.ts";

const OTHERS = new PageRefusal(
  "That person is connected with another account: disconnect it there first.",
  "forbidden",
);
const NOT_YOURS = new PageRefusal("That person of the provider is not connected with this account.", "forbidden");
const NOT_ANEW = new PageRefusal("The provider did not ask you anew: sign out there, then try again.", "forbidden");
const LAST_WAY = new PageRefusal(
  "There is no other way to sign in to this account. Connect another person first, or ask the operator of this service for a link that sets a password.",
);

export class Identities {
  constructor(private readonly options: PeopleOptions) {}

  async of({ accountId }: Person): Promise<readonly ConnectedIdentity[] | StoreDown> {
    return await this.options.store.people.identitiesOf(accountId);
  }

  /** The token of a new sign-in. */
  async enter(identity: Identity): Promise<string | PageRefusal> {
    const { store, clock, signUpOpen } = this.options;
    const token = makeToken();
    const now = seenSeconds(clock);
    const provedAt = this.provedAt(identity);
    const entered = await store.people.identityEnter({
      ...identity,
      newAccountId: signUpOpen ? makeId("acct_", clock) : undefined,
      signIn: { tokenSha256: sha256(token), at: now, provedAt, expiresAt: now + LIMITS.signInSeconds },
      at: unixSeconds(clock),
    });
    if (entered instanceof StoreDown) return unavailable();
    if (entered === "unknown") {
      return new PageRefusal(
        `There is no account for ${identity.email}. Accounts of this service are made by its operator.`,
        "forbidden",
      );
    }
    if (entered !== "email_taken") return token;
    return new PageRefusal(
      `There is an account for ${identity.email} already. Sign in to it as before, then connect it on its page; if it is not yours, ask the operator of this service.`,
      "forbidden",
    );
  }

  /** The sign-in of the person is young again if the provider has just asked the same person. */
  async prove({ accountId, token }: Person, identity: Identity): Promise<PageRefusal | undefined> {
    const { store, clock } = this.options;
    const own = await store.people.identitiesOf(accountId);
    if (own instanceof StoreDown) return unavailable();
    if (!own.some(({ issuer, subject }) => issuer === identity.issuer && subject === identity.subject))
      return NOT_YOURS;
    const at = this.provedAt(identity);
    if (seenSeconds(clock) - at > LIMITS.signInFreshSeconds) return NOT_ANEW;
    const proved = await store.people.signInProve({ tokenSha256: sha256(token), at });
    return proved instanceof StoreDown ? unavailable() : undefined;
  }

  async connect({ accountId }: Person, identity: Identity): Promise<PageRefusal | undefined> {
    const { store, clock } = this.options;
    const connected = await store.people.identityConnect({ ...identity, accountId, at: unixSeconds(clock) });
    if (connected instanceof StoreDown) return unavailable();
    return connected === "taken" ? OTHERS : undefined;
  }

  async disconnect({ accountId, token }: Person, identity: IdentityKey): Promise<PageRefusal | undefined> {
    const end = { ...identity, accountId, keepSignIn: sha256(token) };
    const ended = await this.options.store.people.identityEnd(end);
    if (ended instanceof StoreDown) return unavailable();
    return ended === "last_way" ? LAST_WAY : undefined;
  }

  /** Seen time of the proof: when the provider asked the person, if it says so, which by single sign-on may be long ago. */
  private provedAt({ askedAt }: Identity): number {
    const { clock } = this.options;
    return seenSeconds(clock) - (askedAt === undefined ? 0 : Math.max(0, unixSeconds(clock) - askedAt));
  }
}
