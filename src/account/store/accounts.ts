/** The domain of accounts: who pays, and the API keys (keys.ts). */
import { credit } from "../../charge/store/charges.ts";
import { LIMITS } from "../../limits.ts";
import { monthOf } from "../../std/calendar.ts";
import type { DomainOf, Slice } from "../../store/domain.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, rows, type Steps } from "../../store/steps.ts";
import { keyAdd, keyByPublicId, keyRevoke, keysOf, keysRecent, keysRevision, keysUsed, mayHaveKeys } from "./keys.ts";

export interface Account {
  readonly id: string;
  readonly email: string;
  readonly createdAt: number;
  readonly paymentMethod: boolean;
  /** An operator has made the account or confirmed its e-mail. The e-mail of an open sign-up is not confirmed. */
  readonly verified: boolean;
  /** The sum of all payments, less what was taken back. */
  readonly credits: bigint;
  /** The sum of all settlements. */
  readonly settled: bigint;
  /** The most that open charges may cost. */
  readonly held: bigint;
  /** The limit of a month. */
  readonly spendLimit: bigint | undefined;
  /** The month of the last settlement, and the sum of that month. */
  readonly month: number;
  readonly monthSettled: bigint;
  /** argon2id; undefined: no person can sign in with a password. */
  readonly password: string | undefined;
}

type Optional = "spendLimit" | "paymentMethod" | "verified" | "password";

export interface NewAccount extends Pick<Account, "id" | "email" | "createdAt">, Partial<Pick<Account, Optional>> {
  /** A payment from the start; its transfer has the account's id. */
  readonly credit?: bigint;
}

/** An e-mail address as accounts have it, in lower case; undefined for a text that cannot be one. */
export function readEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase();
  const good = email.length <= LIMITS.emailCharsMax && /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u.test(email);
  return good ? email : undefined;
}

const ACCOUNT = `SELECT id, email, created_at, payment_method, verified, credits, settled, held, spend_limit, month, month_settled, password
  FROM accounts`;

const plain = recordOf<Omit<Account, "paymentMethod" | "verified">>("createdAt", "month");
const account = (row: Row): Account => ({
  ...plain(row),
  paymentMethod: row.payment_method === 1n,
  verified: row.verified === 1n,
});

function* accountByEmail(email: string): Steps<Account | undefined> {
  const row = yield* first<Row>(`${ACCOUNT} WHERE email = $1`, email);
  return row && account(row);
}

function* accountById(id: string): Steps<Account | undefined> {
  const row = yield* first<Row>(`${ACCOUNT} WHERE id = $1`, id);
  return row && account(row);
}

export function* list(): Steps<readonly Account[]> {
  return (yield* rows<Row>(`${ACCOUNT} ORDER BY id`)).map(account);
}

export function* accountAdd(added: NewAccount): Steps<"added" | "email_taken"> {
  const { id, createdAt: at, credit: amount = 0n } = added;
  const flags = { paymentMethod: Number(added.paymentMethod ?? false), verified: Number(added.verified ?? false) };
  const inserted = yield* changes(
    `INSERT INTO accounts (id, email, created_at, payment_method, verified, spend_limit, password)
     VALUES ($id, $email, $createdAt, $paymentMethod, $verified, $spendLimit, $password) ON CONFLICT DO NOTHING`,
    { spendLimit: undefined, password: undefined, ...added, ...flags },
  );
  if (inserted === 0) {
    const known = yield* first<{ email: string }>("SELECT email FROM accounts WHERE id = $1", id);
    return known?.email === added.email ? "added" : "email_taken";
  }
  if (amount !== 0n) yield* credit({ accountId: id, transferId: id, amount, at, month: monthOf(at) });
  return "added";
}

function* spendLimit(set: { accountId: string; limit: bigint | undefined }): Steps<"changed" | "account_unknown"> {
  const changed = yield* changes("UPDATE accounts SET spend_limit = $limit WHERE id = $accountId", set);
  return changed === 1 ? "changed" : "account_unknown";
}

/** An operator's change; undefined leaves a field as it is. */
function* accountSet(set: {
  accountId: string;
  paymentMethod?: boolean | undefined;
  verified?: boolean | undefined;
}): Steps<"changed" | "account_unknown"> {
  const flag = (value: boolean | undefined) => (value === undefined ? null : Number(value));
  const changed = yield* changes(
    `UPDATE accounts SET payment_method = coalesce($paymentMethod, payment_method), verified = coalesce($verified, verified)
     WHERE id = $accountId`,
    { accountId: set.accountId, paymentMethod: flag(set.paymentMethod), verified: flag(set.verified) },
  );
  return changed === 1 ? "changed" : "account_unknown";
}

const reads = { mayHaveKeys, accountByEmail, accountById, list, keyByPublicId, keysOf, keysRecent, keysRevision };

const writes = { accountAdd, keyAdd, keyRevoke, keysUsed, spendLimit, accountSet };

export const accounts = {
  reads,
  writes,
  notDurable: ["keysUsed"],
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type AccountStore = Slice<typeof accounts>;
