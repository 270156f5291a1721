/**
 * Transfers. Every movement of money is one: two entries, in two books, that sum to zero. A credit moves from `funding` to the
 * account, a settlement from the account to `revenue`. Entries are never changed; those of charges that are forgotten are added
 * up in one transfer per account and month (retention.ts).
 */
import { changes, type Steps } from "../../store/steps.ts";
import type { Credit } from "./records.ts";

export type Book = "account" | "funding" | "revenue";
type Kind = "credit" | "settlement";

/** The two entries of a transfer to the account and its other book; 0 when the transfer is known. */
export function* transfer(id: string, kind: Kind, other: Book, to: Omit<Credit, "transferId">): Steps<number> {
  return yield* changes(
    `INSERT INTO entries (transfer, book, kind, account_id, amount, month, at)
     VALUES ($id, 'account', $kind, $accountId, $amount, $month, $at), ($id, $other, $kind, $accountId, $counter, $month, $at)
     ON CONFLICT DO NOTHING`,
    { ...to, id, kind, other, counter: -to.amount },
  );
}
