/** Sign-ins: with the account's password, or as a person whom an OpenID provider knows. Tokens are kept as SHA-256 alone, 32 bytes. */
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, type Steps } from "../../store/steps.ts";

/** A new sign-in, whose person has just proved who it is. Times are of seen time (std/seen-clock.ts). */
interface NewSignIn {
  readonly tokenSha256: Uint8Array;
  readonly accountId: string;
  readonly at: number;
  readonly expiresAt: number;
}

interface SignIn {
  readonly accountId: string;
  readonly email: string;
  readonly method: "password" | "provider";
  /** The last proof that the person is the one who signed in. */
  readonly provedAt: number;
}

export interface TokenUse {
  readonly tokenSha256: Uint8Array;
  /** Seen time. */
  readonly now: number;
}

const signIn = recordOf<SignIn>("provedAt");

export function* signInByToken(use: TokenUse): Steps<SignIn | undefined> {
  const row = yield* first<Row>(
    `SELECT account_id, email, method, proved_at FROM sign_ins JOIN accounts ON accounts.id = account_id
     WHERE token_sha256 = $tokenSha256 AND expires_at > $now`,
    { ...use },
  );
  return row && signIn(row);
}

/** Adds nothing once the account has another hash than `password`, which was verified. */
export function* signInAdd(added: NewSignIn & { readonly password: string }): Steps<"added" | "password_changed"> {
  const same = "SELECT id FROM accounts WHERE id = $accountId AND password = $password FOR NO KEY UPDATE";
  if (!(yield* first(same, { ...added }))) return "password_changed";
  yield* insert(added, "password");
  return "added";
}

function* insert(added: NewSignIn, method: SignIn["method"]): Steps<void> {
  yield* changes(
    `INSERT INTO sign_ins (token_sha256, account_id, method, created_at, proved_at, expires_at)
     VALUES ($tokenSha256, $accountId, $method, $at, $at, $expiresAt) ON CONFLICT DO NOTHING`,
    { ...added, method },
  );
}

export function* signInProve({ tokenSha256, at }: { tokenSha256: Uint8Array; at: number }): Steps<"proved"> {
  yield* changes("UPDATE sign_ins SET proved_at = $2 WHERE token_sha256 = $1", tokenSha256, at);
  return "proved";
}

export function* signInRemove({ tokenSha256 }: { tokenSha256: Uint8Array }): Steps<"removed"> {
  yield* changes("DELETE FROM sign_ins WHERE token_sha256 = $1", tokenSha256);
  return "removed";
}

/** The pair names a person of a provider for good. */
interface IdentityKey {
  readonly issuer: string;
  readonly subject: string;
}

interface IdentityUse extends IdentityKey {
  /** Verified by the provider. */
  readonly email: string;
  /** The account of the signed-in person who asked to connect it with the identity. */
  readonly connect: string | undefined;
  /** The account to make for a new person; undefined: there is no sign-up. */
  readonly newAccountId: string | undefined;
  readonly signIn: Omit<NewSignIn, "accountId">;
  /** Creation of a new account or identity, by the wall clock. */
  readonly at: number;
}

/**
 * Signs in the account of the identity. A new identity gets the account that asks for it, or the one of its e-mail if no person can
 * sign in to that yet, or a new one. `email_taken`: the person who has the password must connect the account first, since another
 * person may have made it with that e-mail. Repeatable.
 */
export function* identityEnter(use: IdentityUse): Steps<"entered" | "email_taken" | "unknown"> {
  const { issuer, subject } = use;
  const known = yield* accountOf({ issuer, subject });
  const accountId = known ?? (yield* accountFor(use));
  if (accountId === "email_taken" || accountId === "unknown") return accountId;
  if (known === undefined) {
    yield* changes(
      `INSERT INTO identities (issuer, subject, account_id, created_at) VALUES ($issuer, $subject, $accountId, $at)
       ON CONFLICT DO NOTHING`,
      { issuer, subject, accountId, at: use.at },
    );
    // The first of two that connect the identity at once has it.
    if ((yield* accountOf({ issuer, subject })) !== accountId) return "email_taken";
  }
  yield* insert({ ...use.signIn, accountId }, "provider");
  return "entered";
}

function* accountOf({ issuer, subject }: IdentityKey): Steps<string | undefined> {
  const text = 'SELECT account_id AS "accountId" FROM identities WHERE issuer = $1 AND subject = $2';
  return (yield* first<{ accountId: string }>(text, issuer, subject))?.accountId;
}

/** A connected identity alone signs in to it: a provider may give an e-mail to another person later. */
function* isConnected(accountId: string): Steps<boolean> {
  return (yield* first("SELECT issuer FROM identities WHERE account_id = $1", accountId)) !== undefined;
}

function* accountFor({ email, connect, newAccountId, at }: IdentityUse): Steps<string> {
  if (connect !== undefined) return connect;
  const account = yield* first<{ id: string; password: string | null }>(
    "SELECT id, password FROM accounts WHERE email = $1 FOR NO KEY UPDATE",
    email,
  );
  if (account) return account.password === null && !(yield* isConnected(account.id)) ? account.id : "email_taken";
  if (newAccountId === undefined) return "unknown";
  yield* changes(
    "INSERT INTO accounts (id, email, created_at) VALUES ($newAccountId, $email, $at) ON CONFLICT DO NOTHING",
    { newAccountId, email, at },
  );
  const made = yield* first<{ id: string }>("SELECT id FROM accounts WHERE email = $1", email);
  return made?.id === newAccountId ? newAccountId : "email_taken";
}
