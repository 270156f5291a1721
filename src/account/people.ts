/** People: who has signed in, and how one comes to. Failures are words for the page that asked. */
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import { makeId } from "../std/ids.ts";
import type { AccountStore } from "../store/accounts/accounts.ts";
import type { PeopleStore } from "../store/people/people.ts";
import { StoreDown } from "../store/store.ts";
import { readEmail } from "./email.ts";
import { Passwords, passwordProblem } from "./password.ts";
import { isToken, makeToken, sha256 } from "./secret.ts";

/** A person whose browser has shown its cookie. */
export interface Person {
  readonly accountId: string;
  readonly email: string;
  /** Of the cookie; a secret. */
  readonly token: string;
}

/** What a one-time link is for. */
export interface LinkFor {
  /** It makes the operator's account; otherwise it sets the password of an account that has its e-mail. */
  readonly operator: boolean;
  /** Of the account, or a proposal. */
  readonly email: string;
}

/** Why it was not done: what the page says, and of which kind it is. */
export class Refusal {
  constructor(
    readonly text: string,
    readonly kind:
      | "refused"
      | "signInFailed"
      | "forbidden"
      | "tooLarge"
      | "tooMany"
      | "unavailable"
      | "notFound" = "refused",
    /** When it may be tried again. */
    readonly retryAfterSeconds?: number,
  ) {}
}

export interface PeopleOptions {
  readonly store: {
    readonly accounts: Pick<AccountStore, "accountAdd" | "accountByEmail" | "accountById">;
    readonly people: Pick<
      PeopleStore,
      | "attempt"
      | "linkAdd"
      | "linkByToken"
      | "linkRedeem"
      | "operatorMissing"
      | "passwordSet"
      | "signInAdd"
      | "signInByToken"
      | "signInRemove"
    >;
  };
  readonly clock: Clock;
  readonly signUpOpen: boolean;
  /** What the operator's link proposes as e-mail. */
  readonly operatorEmail?: string;
}

export class People {
  private readonly passwords = new Passwords();

  constructor(private readonly options: PeopleOptions) {}

  get signUpOpen(): boolean {
    return this.options.signUpOpen;
  }

  /** Who holds the cookie's token; undefined when nobody is signed in with it. */
  async person(token: string | undefined): Promise<Person | undefined | Refusal> {
    if (!isToken(token)) return undefined;
    const found = await this.options.store.people.signInByToken({ tokenSha256: sha256(token), now: this.now() });
    if (found instanceof StoreDown) return unavailable();
    return found && { accountId: found.accountId, email: found.email, token };
  }

  /** The token of a new sign-in. Wrong e-mail and wrong password look alike, in words and in time. */
  async signIn(typed: { email: string; password: string; network: string }): Promise<string | Refusal> {
    const email = readEmail(typed.email) ?? "";
    // Who is refused for its network writes nothing more, and uses up nothing of others. Many networks together can still keep
    // an e-mail from being tried, but not find its password.
    const tries = [
      [`sign-in from ${typed.network}`, LIMITS.networkTriesMax],
      [`sign-in ${email} ${typed.network}`, LIMITS.signInTriesMax],
      [`sign-in ${email}`, LIMITS.emailTriesMax],
    ] as const;
    for (const [name, max] of tries) {
      const refused = await this.tried(name, max);
      if (refused) return refused;
    }
    const account = await this.options.store.accounts.accountByEmail(email);
    if (account instanceof StoreDown) return unavailable();
    const right = await this.passwords.matches(typed.password, account?.password, typed.network);
    if (right === "busy") return busy();
    if (!right || account?.password === undefined) return wrong();
    return await this.begin(account.id, account.password);
  }

  async signOut({ token }: Person): Promise<Refusal | undefined> {
    const removed = await this.options.store.people.signInRemove({ tokenSha256: sha256(token) });
    return removed instanceof StoreDown ? unavailable() : undefined;
  }

  /** A new account without credit, and its first sign-in. */
  async signUp(typed: { email: string; password: string; network: string }): Promise<string | Refusal> {
    const { store, clock } = this.options;
    if (!this.signUpOpen) return new Refusal("Accounts of this service are made by its operator.", "notFound");
    const email = readEmail(typed.email);
    if (email === undefined) return new Refusal("This is no e-mail address.");
    const problem = passwordProblem(typed.password);
    if (problem) return new Refusal(problem);
    const refused = await this.tried(`sign-up from ${typed.network}`, LIMITS.signUpTriesMax);
    if (refused) return refused;
    const password = await this.passwords.hash(typed.password, typed.network);
    if (password === "busy") return busy();
    const id = makeId("acct_", clock);
    const added = await store.accounts.accountAdd({
      id,
      email,
      createdAt: this.now(),
      credit: 0n,
      spendLimit: undefined,
      paymentMethod: false,
      password,
    });
    if (added instanceof StoreDown) return unavailable();
    if (added === "email_taken") return new Refusal("There is an account of this e-mail already: sign in.");
    return await this.begin(id, password);
  }

  /** A one-time link's token for the operator's account; undefined when somebody can sign in already. */
  async operatorLink(): Promise<string | undefined | StoreDown> {
    const { store } = this.options;
    const missing = await store.people.operatorMissing();
    if (missing !== true) return missing === false ? undefined : missing;
    const token = makeToken();
    const link = { tokenSha256: sha256(token), kind: "operator", accountId: undefined } as const;
    const added = await store.people.linkAdd({ ...link, expiresAt: this.now() + LIMITS.linkSeconds });
    return added instanceof StoreDown ? added : token;
  }

  /** What a one-time link is for. */
  async link(token: string): Promise<LinkFor | Refusal> {
    const found = isToken(token)
      ? await this.options.store.people.linkByToken({ tokenSha256: sha256(token), now: this.now() })
      : undefined;
    if (found instanceof StoreDown) return unavailable();
    if (!found) return linkGone();
    const operator = found.kind === "operator";
    return { operator, email: operator ? (this.options.operatorEmail ?? "") : found.email };
  }

  /** Sets the password that the link is for, and signs in. */
  async redeem(typed: { token: string; email: string; password: string; network: string }): Promise<string | Refusal> {
    const { store, clock } = this.options;
    const link = await this.link(typed.token);
    if (link instanceof Refusal) return link;
    const email = link.operator ? readEmail(typed.email) : link.email;
    if (email === undefined) return new Refusal("This is no e-mail address.");
    const problem = passwordProblem(typed.password);
    if (problem) return new Refusal(problem);
    const password = await this.passwords.hash(typed.password, typed.network);
    if (password === "busy") return busy();
    const redeemed = await store.people.linkRedeem({
      tokenSha256: sha256(typed.token),
      now: this.now(),
      newAccountId: makeId("acct_", clock),
      email,
      password,
    });
    if (redeemed instanceof StoreDown) return unavailable();
    if (redeemed === "link_unknown") return linkGone();
    if (redeemed === "email_taken")
      return new Refusal("Somebody can sign in with this e-mail already: choose another one.");
    return await this.begin(redeemed.accountId, password);
  }

  /** Other sign-ins of the account end. */
  async changePassword(
    person: Person,
    typed: { current: string; password: string; network: string },
  ): Promise<Refusal | undefined> {
    const { store } = this.options;
    const refused = await this.tried(`password of ${person.accountId}`, LIMITS.signInTriesMax);
    if (refused) return refused;
    const problem = passwordProblem(typed.password);
    if (problem) return new Refusal(problem);
    const account = await store.accounts.accountById(person.accountId);
    if (account instanceof StoreDown) return unavailable();
    const right = await this.passwords.matches(typed.current, account?.password, typed.network);
    if (right === "busy") return busy();
    if (!right) return new Refusal("The current password is wrong.");
    const password = await this.passwords.hash(typed.password, typed.network);
    if (password === "busy") return busy();
    const changed = await store.people.passwordSet({
      accountId: person.accountId,
      password,
      keepSignIn: sha256(person.token),
    });
    return changed instanceof StoreDown ? unavailable() : undefined;
  }

  /** Counts a try; too many of one name end in words that say when to come back. */
  async tried(name: string, max: number): Promise<Refusal | undefined> {
    const now = this.now();
    const outcome = await this.options.store.people.attempt({ name, max, windowSeconds: LIMITS.attemptSeconds, now });
    if (outcome === "allowed") return undefined;
    if (outcome instanceof StoreDown) return unavailable();
    const { refusedSeconds } = outcome;
    return new Refusal(`Too many tries: wait ${Math.ceil(refusedSeconds / 60)} minutes.`, "tooMany", refusedSeconds);
  }

  /** As long as the password that was right, `hash`, still is. */
  private async begin(accountId: string, hash: string): Promise<string | Refusal> {
    const token = makeToken();
    const now = this.now();
    const signIn = { tokenSha256: sha256(token), accountId, createdAt: now, expiresAt: now + LIMITS.signInSeconds };
    const added = await this.options.store.people.signInAdd({ ...signIn, password: hash });
    if (added instanceof StoreDown) return unavailable();
    return added === "added" ? token : wrong();
  }

  private now(): number {
    return Math.floor(this.options.clock.unixMs() / 1000);
  }
}

export function unavailable(): Refusal {
  return new Refusal("The service cannot look this up right now: try again in a moment.", "unavailable", 1);
}

function wrong(): Refusal {
  return new Refusal("The e-mail or the password is wrong.", "signInFailed");
}

function busy(): Refusal {
  return new Refusal("Too many people sign in at this moment: try again in some seconds.", "unavailable", 1);
}

function linkGone(): Refusal {
  return new Refusal(
    "This link is unknown, was used, or is too old. The operator of the service can make a new one.",
    "notFound",
  );
}
