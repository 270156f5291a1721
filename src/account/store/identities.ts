/** People whom an OpenID provider knows: which account an identity belongs to. */
import { changes, first, type Steps } from "../../store/steps.ts";
import type { SignIn } from "./people-records.ts";

/** A person of a provider; the pair names them for good. */
interface IdentityKey {
  readonly issuer: string;
  readonly subject: string;
}

export interface IdentityUse extends IdentityKey {
  /** Verified by the provider. */
  readonly email: string;
  /** The account whose person asked, signed in, to be connected with the identity. */
  readonly connect: string | undefined;
  /** The account to make for somebody new; undefined: there is no sign-up. */
  readonly newAccountId: string | undefined;
  readonly signIn: Omit<SignIn, "accountId">;
  /** Creation of a new account or identity, by the wall clock. */
  readonly at: number;
}

/**
 * Signs in the account of the identity. Without one: the account that asks for it, or the one of the e-mail where nobody can sign
 * in to it yet, or a new one. `email_taken`: the person who has the password must connect the account first, since the
 * provider's word alone must not open an account that somebody else may have made with that e-mail. Repeatable.
 */
export function* identityEnter(use: IdentityUse): Steps<{ readonly accountId: string } | "email_taken" | "unknown"> {
  const { issuer, subject, signIn } = use;
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
  yield* changes(
    `INSERT INTO sign_ins (token_sha256, account_id, method, created_at, proved_at, expires_at)
     VALUES ($tokenSha256, $accountId, $method, $createdAt, $provedAt, $expiresAt) ON CONFLICT DO NOTHING`,
    { ...signIn, accountId },
  );
  return { accountId };
}

function* accountOf({ issuer, subject }: IdentityKey): Steps<string | undefined> {
  const text = 'SELECT account_id AS "accountId" FROM identities WHERE issuer = $1 AND subject = $2';
  return (yield* first<{ accountId: string }>(text, issuer, subject))?.accountId;
}

/** A connected identity alone signs in to it: a provider may give an e-mail to another person later. */
function* isConnected(accountId: string): Steps<boolean> {
  return (yield* first("SELECT issuer FROM identities WHERE account_id = $1", accountId)) !== undefined;
}

function* accountFor(use: IdentityUse): Steps<string> {
  const { email, connect, newAccountId, at } = use;
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
