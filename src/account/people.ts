/** People: sign-in, sign-up, one-time links and passwords. Failures are texts for the page that asked. */
import { LIMITS } from "../limits.ts";
import { unixSeconds } from "../std/clock.ts";
import { makeId } from "../std/ids.ts";
import { siteOf } from "../std/networks.ts";
import { type SeenClock, seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { PageRefusal, unavailable } from "./errors.ts";
import { Passwords, passwordProblem } from "./password.ts";
import { isToken, knownBrowser, makeToken, sameText, sha256 } from "./secret.ts";
import { type Account, type AccountStore, readEmail } from "./store/accounts.ts";
import type { PeopleStore } from "./store/people.ts";

/** A signed-in person. */
export interface Person {
  readonly accountId: string;
  readonly email: string;
  /** The value of the sign-in cookie; a secret. */
  readonly token: string;
  /** The last proof is older than `signInFreshSeconds`: making a key asks for another one, by one of these ways. */
  readonly stale: boolean;
  readonly hasPassword: boolean;
  readonly hasIdentity: boolean;
}

/** What a browser gets that has signed in with a password; both are secrets. */
export interface SignedIn {
  /** The value of the sign-in cookie. */
  readonly token: string;
  /** The value of the cookie by which the browser is known afterwards (secret.ts). */
  readonly known: string;
}

/** The effect of a one-time link. */
export interface LinkFor {
  /** It makes the operator's account, with an e-mail that the operator chooses. Other links set the password of an account. */
  readonly operator: boolean;
  /** The account's e-mail; empty where the operator chooses it. */
  readonly email: string;
  /** Valid keys of an account whose password is replaced: its page asks what becomes of them. */
  readonly keys: number;
}

const WRONG = new PageRefusal("The e-mail or the password is wrong.", "signInFailed");
const PASSWORD_AGAIN = new PageRefusal("You signed in a while ago: give your password once more.");
const PROVIDER_AGAIN = new PageRefusal("You signed in a while ago: sign in with your provider once more.");
const NO_EMAIL = new PageRefusal("This is no e-mail address: write one like name@example.org.");
const BUSY = new PageRefusal(
  "Too many people are signing in at this moment: try again in some seconds.",
  "unavailable",
  1,
);
const LINK_GONE = new PageRefusal(
  "This link is unknown, was used, or is too old. The operator of the service can make a new one.",
  "notFound",
);

/** What tries are counted by, and how many of them a window has. */
type Counter = readonly [name: string, max: number];

/** The narrow network comes first: what it refuses uses up no tries of the wide one. */
function networkCounters(what: string, network: string): readonly Counter[] {
  const site = siteOf(network);
  const wide: readonly Counter[] = site === undefined ? [] : [[`${what} from ${site}`, LIMITS.siteTriesMax]];
  return [[`${what} from ${network}`, LIMITS.networkTriesMax], ...wide];
}

/** The id of the browser, if it has signed in with the account's present password before. */
function knownId({ id, password }: Pick<Account, "id" | "password">, cookie: string): string | undefined {
  const [browser = ""] = cookie.split(".");
  return password !== undefined && sameText(cookie, knownBrowser(browser, { id, password })) ? browser : undefined;
}

/** The person's choice whether the account's keys end with its old password; undefined without a choice. */
function keysEnd(chosen: string): boolean | undefined {
  return chosen === "revoke" || chosen === "keep" ? chosen === "revoke" : undefined;
}

const KEYS_UNDECIDED = new PageRefusal(
  "The password is not changed: say what becomes of the account’s keys, whether they stay or are revoked.",
);

export interface PeopleOptions {
  readonly store: {
    readonly accounts: Pick<AccountStore, "accountAdd" | "accountByEmail" | "accountById" | "keysOf">;
    readonly people: PeopleStore;
  };
  readonly clock: SeenClock;
  readonly signUpOpen: boolean;
  /** The account that the operator's link leads to; undefined: the operator chooses one. */
  readonly operatorEmail?: string;
}

/**
 * Links, sign-ins and device logins last for seen time (std/seen-clock.ts), like everything else. Bounding them by the wall clock as well
 * would let a clock that was ahead for a minute sign everybody out and spend every link.
 */
export class People {
  private readonly passwords = new Passwords();

  constructor(private readonly options: PeopleOptions) {}

  get signUpOpen(): boolean {
    return this.options.signUpOpen;
  }

  /** The person signed in with the cookie's token; undefined if nobody is. */
  async person(token: string | undefined): Promise<Person | undefined | PageRefusal> {
    if (!isToken(token)) return undefined;
    const { store, clock } = this.options;
    const now = seenSeconds(clock);
    const found = await store.people.signInByToken({ tokenSha256: sha256(token), now });
    if (found instanceof StoreDown) return unavailable();
    if (!found) return undefined;
    const { provedAt, ...rest } = found;
    return { ...rest, token, stale: now - provedAt > LIMITS.signInFreshSeconds };
  }

  /** A wrong e-mail and a wrong password get the same text after the same time. `known`: the cookie of an earlier sign-in. */
  async signIn(typed: {
    email: string;
    password: string;
    network: string;
    known?: string | undefined;
  }): Promise<SignedIn | PageRefusal> {
    const email = readEmail(typed.email) ?? "";
    const account = await this.options.store.accounts.accountByEmail(email);
    if (account instanceof StoreDown) return unavailable();
    const browser = account && typed.known && knownId(account, typed.known);
    // The network is checked first: a refused network uses up no tries of an e-mail. Many networks together can still lock an
    // e-mail out for a while, but cannot guess its password; a known browser has tries apart from theirs.
    const refused = browser
      ? await this.tried([`sign-in of browser ${browser}`, LIMITS.signInTriesMax])
      : await this.tried(
          ...networkCounters("sign-in", typed.network),
          [`sign-in ${email} ${typed.network}`, LIMITS.signInTriesMax],
          [`sign-in ${email}`, LIMITS.emailTriesMax],
        );
    if (refused) return refused;
    const right = await this.passwords.matches(typed.password, account?.password, typed.network);
    if (right === "busy") return BUSY;
    if (!right || account?.password === undefined) return WRONG;
    return await this.begin(account.id, account.password);
  }

  /** Counts a visit that costs the provider a request. */
  async triedProvider(what: "provider" | "provider back", network: string): Promise<PageRefusal | undefined> {
    return await this.tried(...networkCounters(what, network));
  }

  async signOut({ token }: Person): Promise<PageRefusal | undefined> {
    const removed = await this.options.store.people.signInRemove({ tokenSha256: sha256(token) });
    return removed instanceof StoreDown ? unavailable() : undefined;
  }

  /** A new account without credit, and its first sign-in. */
  async signUp(typed: { email: string; password: string; network: string }): Promise<SignedIn | PageRefusal> {
    const { store, clock } = this.options;
    if (!this.signUpOpen) return new PageRefusal("Accounts of this service are made by its operator.", "notFound");
    const email = readEmail(typed.email);
    if (email === undefined) return NO_EMAIL;
    const problem = passwordProblem(typed.password);
    if (problem) return problem;
    const refused = await this.tried([`sign-up from ${typed.network}`, LIMITS.signUpTriesMax]);
    if (refused) return refused;
    const password = await this.passwords.hash(typed.password, typed.network);
    if (password === "busy") return BUSY;
    const id = makeId("acct_", clock);
    const added = await store.accounts.accountAdd({ id, email, createdAt: unixSeconds(clock), password });
    if (added instanceof StoreDown) return unavailable();
    if (added === "email_taken") return new PageRefusal("There is an account with this e-mail already: sign in.");
    return await this.begin(id, password);
  }

  /** The token of a one-time link for the operator's account; undefined if an account with a password exists. */
  async operatorLink(): Promise<string | undefined | StoreDown> {
    const { store, clock } = this.options;
    const missing = await store.people.operatorMissing();
    if (missing !== true) return missing === false ? undefined : missing;
    const token = makeToken();
    const link = { tokenSha256: sha256(token), kind: "operator", accountId: undefined } as const;
    const added = await store.people.linkAdd({ ...link, expiresAt: seenSeconds(clock) + LIMITS.linkSeconds });
    return added instanceof StoreDown ? added : token;
  }

  async link(token: string): Promise<LinkFor | PageRefusal> {
    if (!isToken(token)) return LINK_GONE;
    const { store, clock } = this.options;
    const found = await store.people.linkByToken({ tokenSha256: sha256(token), now: seenSeconds(clock) });
    if (found instanceof StoreDown) return unavailable();
    if (!found) return LINK_GONE;
    const email = found.kind === "operator" ? this.options.operatorEmail : found.email;
    return { operator: email === undefined, email: email ?? "", keys: found.keys };
  }

  /** Uses up the link: makes the operator's account or sets the password, and signs in. `keys`: "keep" or "revoke". */
  async redeem(typed: {
    token: string;
    email: string;
    password: string;
    keys: string;
    network: string;
  }): Promise<SignedIn | PageRefusal> {
    const { store, clock } = this.options;
    const link = await this.link(typed.token);
    if (link instanceof PageRefusal) return link;
    const email = link.operator ? readEmail(typed.email) : link.email;
    if (email === undefined) return NO_EMAIL;
    const problem = passwordProblem(typed.password);
    if (problem) return problem;
    const revokeKeys = keysEnd(typed.keys);
    if (revokeKeys === undefined && link.keys > 0) return KEYS_UNDECIDED;
    const password = await this.passwords.hash(typed.password, typed.network);
    if (password === "busy") return BUSY;
    const redeemed = await store.people.linkRedeem({
      tokenSha256: sha256(typed.token),
      now: seenSeconds(clock),
      newAccountId: makeId("acct_", clock),
      createdAt: unixSeconds(clock),
      email,
      password,
      revokeKeys: revokeKeys === true,
    });
    if (redeemed instanceof StoreDown) return unavailable();
    if (redeemed === "link_unknown") return LINK_GONE;
    if (redeemed === "email_taken") {
      const advice = link.operator ? "choose another one" : "sign in with it";
      return new PageRefusal(`Somebody can sign in with this e-mail already: ${advice}.`);
    }
    return await this.begin(redeemed.accountId, password);
  }

  /** Ends all other sign-ins of the account, and its keys where `keys` says "revoke". The new password makes the browser known anew. */
  async changePassword(
    person: Person,
    typed: { current: string; password: string; keys: string; network: string },
  ): Promise<Pick<SignedIn, "known"> | PageRefusal> {
    const { store, clock } = this.options;
    const { accountId, token } = person;
    const problem = passwordProblem(typed.password);
    if (problem) return problem;
    const revokeKeys = keysEnd(typed.keys);
    const keys = await store.accounts.keysOf(accountId);
    if (keys instanceof StoreDown) return unavailable();
    if (revokeKeys === undefined && keys.some(({ revokedAt }) => revokedAt === undefined)) return KEYS_UNDECIDED;
    const wrong = await this.checked(person, typed);
    if (wrong) return wrong;
    const password = await this.passwords.hash(typed.password, typed.network);
    if (password === "busy") return BUSY;
    const change = { accountId, password, keepSignIn: sha256(token), revokeKeys: revokeKeys === true };
    const changed = await store.people.passwordSet({ ...change, now: unixSeconds(clock) });
    if (changed instanceof StoreDown) return unavailable();
    return { known: knownBrowser(makeToken(), { id: accountId, password }) };
  }

  /** With an old sign-in the person proves again to be the one who signed in, which makes the sign-in young. */
  async prove(person: Person, typed: { current: string; network: string }): Promise<PageRefusal | undefined> {
    if (!person.stale) return undefined;
    if (typed.current === "") return person.hasPassword ? PASSWORD_AGAIN : PROVIDER_AGAIN;
    const wrong = await this.checked(person, typed);
    if (wrong) return wrong;
    const { store, clock } = this.options;
    const proved = await store.people.signInProve({ tokenSha256: sha256(person.token), at: seenSeconds(clock) });
    return proved instanceof StoreDown ? unavailable() : undefined;
  }

  /** Compares with the account's password. Strangers cannot use up these tries, since the person is signed in. */
  private async checked(
    { accountId }: Person,
    { current, network }: { current: string; network: string },
  ): Promise<PageRefusal | undefined> {
    const refused = await this.tried([`password of ${accountId}`, LIMITS.signInTriesMax]);
    if (refused) return refused;
    const account = await this.options.store.accounts.accountById(accountId);
    if (account instanceof StoreDown) return unavailable();
    const right = await this.passwords.matches(current, account?.password, network);
    if (right === "busy") return BUSY;
    return right ? undefined : new PageRefusal("The current password is wrong.");
  }

  /** Counts a try under each name in turn, until one has had more than its maximum within the window. */
  async tried(...names: readonly Counter[]): Promise<PageRefusal | undefined> {
    const { store, clock } = this.options;
    for (const [name, max] of names) {
      const counted = { name, max, windowSeconds: LIMITS.attemptSeconds, now: seenSeconds(clock) };
      const outcome = await store.people.attempt(counted);
      if (outcome instanceof StoreDown) return unavailable();
      if (outcome === "allowed") continue;
      const minutes = Math.ceil(outcome.refusedSeconds / 60);
      return new PageRefusal(`Too many tries: wait ${minutes} minutes.`, "tooMany", outcome.refusedSeconds);
    }
    return undefined;
  }

  /** Signs in, unless the password was changed since `hash` was verified. */
  private async begin(accountId: string, hash: string): Promise<SignedIn | PageRefusal> {
    const token = makeToken();
    const at = seenSeconds(this.options.clock);
    const signIn = { tokenSha256: sha256(token), accountId, at, expiresAt: at + LIMITS.signInSeconds };
    const added = await this.options.store.people.signInAdd({ ...signIn, password: hash });
    if (added instanceof StoreDown) return unavailable();
    return added === "added" ? { token, known: knownBrowser(makeToken(), { id: accountId, password: hash }) } : WRONG;
  }
}
