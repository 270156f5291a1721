/**
 * The settlement of a charge, as steps that a surface's operation composes with its own record in one transaction: a robot's
 * `settleChunk` keeps the answer of an observation with it. `SETTLE_SQL` does the same in a function of PostgreSQL.
 */
import { changes, first, type Steps } from "../../store/steps.ts";
import type { Transfer } from "../../store/store.ts";
import type { Credit, Settlement } from "./records.ts";

export type Book = "account" | "funding" | "revenue";
type Kind = "credit" | "settlement";

/**
 * Every movement of money is a transfer: two entries, in two books, that sum to 0. A credit moves from `funding` to the account, a
 * settlement from the account to `revenue`. Entries are never changed; those of forgotten charges are summed up in one transfer per
 * account and month (retention.ts).
 *
 * Writes the entries of a transfer in the account's book and in the other one; 0 when the transfer is known.
 */
export function* transfer(id: string, kind: Kind, other: Book, to: Omit<Credit, "transferId">): Steps<number> {
  return yield* changes(
    `INSERT INTO entries (transfer, book, kind, account_id, amount, month, at)
     VALUES ($id, 'account', $kind, $accountId, $amount, $month, $at), ($id, $other, $kind, $accountId, $counter, $month, $at)
     ON CONFLICT DO NOTHING`,
    { ...to, id, kind, other, counter: -to.amount },
  );
}

const ADD_USAGE = `ON CONFLICT (account_id, day, item) DO UPDATE SET charges = usage_days.charges + 1,
      prompt_tokens = usage_days.prompt_tokens + excluded.prompt_tokens,
      cached_tokens = usage_days.cached_tokens + excluded.cached_tokens,
      completion_tokens = usage_days.completion_tokens + excluded.completion_tokens, cost = usage_days.cost + excluded.cost`;

/**
 * The cost of a month that is not the one in the account's row. It is needed at the turn of a month, and when a wall clock jumps to
 * another month. The day of `charge`, which is of that month, bounds the look-up.
 */
export function monthCost(charge: { readonly account: string; readonly month: string; readonly day: string }): string {
  return `(SELECT coalesce(CAST(sum(cost) AS BIGINT), 0) FROM usage_days
    WHERE account_id = ${charge.account} AND day BETWEEN ${charge.day} - 31 AND ${charge.day} + 31
      AND usage_days.month = ${charge.month})`;
}

/** The assignment that makes the account's month that of this settlement, earlier or later than before. */
function addToMonth(charge: Parameters<typeof monthCost>[0], cost: string): string {
  return `month_settled = CASE WHEN month = ${charge.month} THEN month_settled ELSE ${monthCost(charge)} END + ${cost},
       month = ${charge.month}`;
}

const USAGE_TEXT = `
  INSERT INTO usage_days (account_id, day, item, month, charges, prompt_tokens, cached_tokens, completion_tokens, cost)
  VALUES ($accountId, $day, $item, $month, 1, $promptTokens, $cachedTokens, $completionTokens, $cost) ${ADD_USAGE}`;

/** Records the charge's usage, price and entries. `again`: it was settled before. */
export function* settle({ chargeId, accountId, usage, cost, at }: Settlement): Steps<"settled" | "again" | "not_held"> {
  const settlement = { chargeId, accountId, ...usage, cost, at };
  const charge = yield* first<{ item: string; held: bigint; day: bigint; month: bigint; submitted_at: bigint }>(
    `UPDATE charges SET settled_at = $at, prompt_tokens = $promptTokens, cached_tokens = $cachedTokens,
       completion_tokens = $completionTokens, cost = $cost
     WHERE id = $chargeId AND account_id = $accountId AND settled_at IS NULL AND held >= $cost
     RETURNING item, held, day, month, submitted_at`,
    settlement,
  );
  if (!charge) {
    const known = yield* first<object>("SELECT id FROM charges WHERE id = $1 AND settled_at IS NOT NULL", chargeId);
    return known ? "again" : "not_held";
  }
  const settled = { ...settlement, ...charge };
  yield* changes(
    `UPDATE accounts SET settled = settled + $cost, held = held - $held,
       ${addToMonth({ account: "$accountId", month: "$month", day: "$day" }, "$cost")}
     WHERE id = $accountId`,
    settled,
  );
  // The ledger follows the calendar: moment and month are those of the submission.
  const entry = { amount: -cost, month: Number(charge.month), at: Number(charge.submitted_at) };
  yield* transfer(chargeId, "settlement", "revenue", { accountId, ...entry });
  yield* changes(USAGE_TEXT, settled);
  return "settled";
}

export function settlementTransfer({ chargeId: id, accountId, cost: amount, at }: Settlement): Transfer {
  return { id, accountId, amount, at };
}

/** Variables of a PL/pgSQL function that settles. */
export const SETTLE_DECLARE = `
  r charges%ROWTYPE;
  paid bigint := (o->>'cost')::bigint;`;

/** Settles the charge of the order `o` (`settlementOrder`) of a locked account. Otherwise `r.id` is NULL afterwards. */
export const SETTLE_SQL = `
  UPDATE charges SET settled_at = (o->>'at')::bigint, prompt_tokens = (o->>'promptTokens')::bigint,
    cached_tokens = (o->>'cachedTokens')::bigint, completion_tokens = (o->>'completionTokens')::bigint, cost = paid
  WHERE id = o->>'chargeId' AND account_id = o->>'accountId' AND settled_at IS NULL AND held >= paid RETURNING * INTO r;
  IF FOUND THEN
    UPDATE accounts SET settled = settled + paid, held = held - r.held,
      ${addToMonth({ account: "r.account_id", month: "r.month", day: "r.day" }, "paid")}
    WHERE id = r.account_id;
    INSERT INTO entries (transfer, book, kind, account_id, amount, month, at)
    VALUES (r.id, 'account', 'settlement', r.account_id, -paid, r.month, r.submitted_at),
           (r.id, 'revenue', 'settlement', r.account_id, paid, r.month, r.submitted_at);
    INSERT INTO usage_days (account_id, day, item, month, charges, prompt_tokens, cached_tokens, completion_tokens, cost)
    VALUES (r.account_id, r.day, r.item, r.month, 1, (o->>'promptTokens')::bigint, (o->>'cachedTokens')::bigint,
      (o->>'completionTokens')::bigint, paid)
    ${ADD_USAGE};
  END IF;`;

/** A settlement in the form that `SETTLE_SQL` reads. */
export function settlementOrder({ chargeId, accountId, usage, cost, at }: Settlement) {
  return { chargeId, accountId, at, ...usage, cost: String(cost) };
}
