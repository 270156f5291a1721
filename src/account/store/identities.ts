/** Identities: persons whom OpenID providers know, each connected with one account. */
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, rows, type Steps } from "../../store/steps.ts";
import { addSignIn, type NewSignIn } from "./sign-ins.ts";

/** The pair names a person of a provider for good. */
export interface IdentityKey {
  readonly issuer: string;
  readonly subject: string;
}

export interface ConnectedIdentity extends IdentityKey {
  /** What the provider said last; empty where none was kept. */
  readonly email: string;
  /** Time of the wall clock. */
  readonly createdAt: number;
}

const connected = recordOf<ConnectedIdentity>("createdAt");

export function* identitiesOf(accountId: string): Steps<readonly ConnectedIdentity[]> {
  const found = yield* rows<Row>(
    `SELECT issuer, subject, email, created_at FROM identities WHERE account_id = $1
     ORDER BY created_at, issuer, subject`,
    accountId,
  );
  return found.map(connected);
}

interface IdentityUse extends IdentityKey {
  /** Verified by the provider. */
  readonly email: string;
  /** Creation of a new account or identity, by the wall clock. */
  readonly at: number;
}

interface Entry extends IdentityUse {
  /** The account to make for a new person; undefined: there is no sign-up. */
  readonly newAccountId: string | undefined;
  readonly signIn: Omit<NewSignIn, "accountId">;
}

/**
 * Signs in the account of the identity. A new identity gets the account of its e-mail if no person can sign in to that yet, or a new
 * one. `email_taken`: the person who has the password must connect the account first, since another person may have made it with that
 * e-mail. Repeatable.
 */
export function* identityEnter(entry: Entry): Steps<"entered" | "email_taken" | "unknown"> {
  const accountId = (yield* accountOf(entry)) ?? (yield* accountFor(entry));
  if (accountId === "email_taken" || accountId === "unknown") return accountId;
  if ((yield* identityConnect({ ...entry, accountId })) === "taken") return "email_taken";
  yield* addSignIn({ ...entry.signIn, accountId }, "provider");
  return "entered";
}

/** The first account that an identity is connected with has it. */
export function* identityConnect(use: IdentityUse & { readonly accountId: string }): Steps<"connected" | "taken"> {
  const { issuer, subject, email, accountId, at } = use;
  yield* changes(
    `INSERT INTO identities (issuer, subject, account_id, email, created_at)
     VALUES ($issuer, $subject, $accountId, $email, $at) ON CONFLICT (issuer, subject) DO UPDATE SET email = excluded.email`,
    { issuer, subject, accountId, email, at },
  );
  return (yield* accountOf(use)) === accountId ? "connected" : "taken";
}

/** Other sign-ins by a provider than `keepSignIn` end with it. `last_way`: nobody could sign in to the account any more. */
export function* identityEnd(
  end: IdentityKey & { readonly accountId: string; readonly keepSignIn: Uint8Array },
): Steps<"ended" | "last_way"> {
  const { accountId, issuer, subject, keepSignIn } = end;
  const locked = "SELECT password FROM accounts WHERE id = $1 FOR NO KEY UPDATE";
  const account = yield* first<{ password: string | null }>(locked, accountId);
  const others = (yield* identitiesOf(accountId)).filter((one) => one.issuer !== issuer || one.subject !== subject);
  if (account?.password === null && others.length === 0) return "last_way";
  yield* changes("DELETE FROM identities WHERE account_id = $accountId AND issuer = $issuer AND subject = $subject", {
    accountId,
    issuer,
    subject,
  });
  yield* changes(
    "DELETE FROM sign_ins WHERE account_id = $accountId AND method = 'provider' AND token_sha256 <> $keepSignIn",
    { accountId, keepSignIn },
  );
  return "ended";
}

function* accountOf({ issuer, subject }: IdentityKey): Steps<string | undefined> {
  const text = 'SELECT account_id AS "accountId" FROM identities WHERE issuer = $1 AND subject = $2';
  return (yield* first<{ accountId: string }>(text, issuer, subject))?.accountId;
}

/** A connected identity alone signs in to it: a provider may give an e-mail to another person later. */
function* accountFor({ email, newAccountId, at }: Entry): Steps<string> {
  const account = yield* first<{ id: string; password: string | null }>(
    "SELECT id, password FROM accounts WHERE email = $1 FOR NO KEY UPDATE",
    email,
  );
  if (account) {
    const isFree = account.password === null && (yield* identitiesOf(account.id)).length === 0;
    return isFree ? account.id : "email_taken";
  }
  if (newAccountId === undefined) return "unknown";
  yield* changes(
    "INSERT INTO accounts (id, email, created_at) VALUES ($newAccountId, $email, $at) ON CONFLICT DO NOTHING",
    { newAccountId, email, at },
  );
  const made = yield* first<{ id: string }>("SELECT id FROM accounts WHERE email = $1", email);
  return made?.id === newAccountId ? newAccountId : "email_taken";
}
