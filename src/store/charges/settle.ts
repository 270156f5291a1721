/**
 * The settlement of a charge, as steps that a surface's operation composes with its own record, in one transaction: a robot's
 * `settleChunk` keeps the answer of an observation with it. `SETTLE_SQL` is the same for functions of PostgreSQL.
 */
import { changes, first, rows, type Steps } from "../steps.ts";
import type { Settlement } from "./records.ts";
import { transfer } from "./transfer.ts";

/** The charge's usage, price and entries. `again`: it was settled before. */
export function* settle({ chargeId, accountId, usage, cost, at }: Settlement): Steps<"settled" | "again" | "not_held"> {
  const [charge] = yield* rows<{ item: string; held: bigint; day: bigint; month: bigint }>(
    `UPDATE charges SET settled_at = $3, prompt_tokens = $4, cached_tokens = $5, completion_tokens = $6, cost = $7
     WHERE id = $1 AND account_id = $2 AND settled_at IS NULL AND held >= $7 RETURNING item, held, day, month`,
    chargeId,
    accountId,
    at,
    usage.promptTokens,
    usage.cachedTokens,
    usage.completionTokens,
    cost,
  );
  if (!charge) {
    const known = yield* first<object>("SELECT id FROM charges WHERE id = $1 AND settled_at IS NOT NULL", chargeId);
    return known ? "again" : "not_held";
  }
  yield* changes(
    `UPDATE accounts SET settled = settled + $2, held = held - $3,
       month_settled = CASE WHEN month = $4 THEN month_settled + $2 WHEN month < $4 THEN $2 ELSE month_settled END,
       month = CASE WHEN month < $4 THEN $4 ELSE month END
     WHERE id = $1`,
    accountId,
    cost,
    charge.held,
    charge.month,
  );
  yield* transfer(chargeId, "settlement", "revenue", { accountId, amount: -cost, month: Number(charge.month), at });
  yield* changes(
    `INSERT INTO usage_days (account_id, day, item, month, charges, prompt_tokens, cached_tokens, completion_tokens, cost)
     VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8)
     ON CONFLICT (account_id, day, item) DO UPDATE SET charges = usage_days.charges + 1,
       prompt_tokens = usage_days.prompt_tokens + excluded.prompt_tokens,
       cached_tokens = usage_days.cached_tokens + excluded.cached_tokens,
       completion_tokens = usage_days.completion_tokens + excluded.completion_tokens,
       cost = usage_days.cost + excluded.cost`,
    accountId,
    charge.day,
    charge.item,
    charge.month,
    usage.promptTokens,
    usage.cachedTokens,
    usage.completionTokens,
    cost,
  );
  return "settled";
}

/** Variables of a PL/pgSQL function that settles. */
export const SETTLE_DECLARE = `
  r charges%ROWTYPE;
  paid bigint := (o->>'cost')::bigint;`;

/** Settles the charge of the order `o` (`settlementOrder`), whose account is locked. Afterwards `r.id` is NULL when it did not. */
export const SETTLE_SQL = `
  UPDATE charges SET settled_at = (o->>'at')::bigint, prompt_tokens = (o->>'promptTokens')::bigint,
    cached_tokens = (o->>'cachedTokens')::bigint, completion_tokens = (o->>'completionTokens')::bigint, cost = paid
  WHERE id = o->>'chargeId' AND account_id = o->>'accountId' AND settled_at IS NULL AND held >= paid RETURNING * INTO r;
  IF FOUND THEN
    UPDATE accounts SET settled = settled + paid, held = held - r.held,
      month_settled = CASE WHEN month = r.month THEN month_settled + paid WHEN month < r.month THEN paid ELSE month_settled END,
      month = CASE WHEN month < r.month THEN r.month ELSE month END
    WHERE id = r.account_id;
    INSERT INTO entries (transfer, book, kind, account_id, amount, month, at)
    VALUES (r.id, 'account', 'settlement', r.account_id, -paid, r.month, (o->>'at')::bigint),
           (r.id, 'revenue', 'settlement', r.account_id, paid, r.month, (o->>'at')::bigint);
    INSERT INTO usage_days (account_id, day, item, month, charges, prompt_tokens, cached_tokens, completion_tokens, cost)
    VALUES (r.account_id, r.day, r.item, r.month, 1, (o->>'promptTokens')::bigint, (o->>'cachedTokens')::bigint,
      (o->>'completionTokens')::bigint, paid)
    ON CONFLICT (account_id, day, item) DO UPDATE SET charges = usage_days.charges + 1,
      prompt_tokens = usage_days.prompt_tokens + excluded.prompt_tokens,
      cached_tokens = usage_days.cached_tokens + excluded.cached_tokens,
      completion_tokens = usage_days.completion_tokens + excluded.completion_tokens,
      cost = usage_days.cost + excluded.cost;
  END IF;`;

/** A settlement as `SETTLE_SQL` reads it. */
export function settlementOrder({ chargeId, accountId, usage, cost, at }: Settlement) {
  return { chargeId, accountId, at, ...usage, cost: String(cost) };
}
