/**
 * The settlement of a charge, as steps that a surface's operation composes with its own record, in one transaction: a robot's
 * `settleChunk` keeps the answer of an observation with it. `SETTLE_SQL` is the same for functions of PostgreSQL.
 */
import { changes, first, type Steps } from "../steps.ts";
import type { Settlement } from "./records.ts";
import { transfer } from "./transfer.ts";

const ADD_USAGE = `ON CONFLICT (account_id, day, item) DO UPDATE SET charges = usage_days.charges + 1,
      prompt_tokens = usage_days.prompt_tokens + excluded.prompt_tokens,
      cached_tokens = usage_days.cached_tokens + excluded.cached_tokens,
      completion_tokens = usage_days.completion_tokens + excluded.completion_tokens, cost = usage_days.cost + excluded.cost`;

const USAGE_TEXT = `
  INSERT INTO usage_days (account_id, day, item, month, charges, prompt_tokens, cached_tokens, completion_tokens, cost)
  VALUES ($accountId, $day, $item, $month, 1, $promptTokens, $cachedTokens, $completionTokens, $cost) ${ADD_USAGE}`;

/** The charge's usage, price and entries. `again`: it was settled before. */
export function* settle({ chargeId, accountId, usage, cost, at }: Settlement): Steps<"settled" | "again" | "not_held"> {
  const settlement = { chargeId, accountId, ...usage, cost, at };
  const charge = yield* first<{ item: string; held: bigint; day: bigint; month: bigint }>(
    `UPDATE charges SET settled_at = $at, prompt_tokens = $promptTokens, cached_tokens = $cachedTokens,
       completion_tokens = $completionTokens, cost = $cost
     WHERE id = $chargeId AND account_id = $accountId AND settled_at IS NULL AND held >= $cost
     RETURNING item, held, day, month`,
    settlement,
  );
  if (!charge) {
    const known = yield* first<object>("SELECT id FROM charges WHERE id = $1 AND settled_at IS NOT NULL", chargeId);
    return known ? "again" : "not_held";
  }
  const settled = { ...settlement, ...charge };
  yield* changes(
    `UPDATE accounts SET settled = settled + $cost, held = held - $held,
       month_settled = CASE WHEN month = $month THEN month_settled + $cost WHEN month < $month THEN $cost ELSE month_settled END,
       month = CASE WHEN month < $month THEN $month ELSE month END
     WHERE id = $accountId`,
    settled,
  );
  yield* transfer(chargeId, "settlement", "revenue", { accountId, amount: -cost, month: Number(charge.month), at });
  yield* changes(USAGE_TEXT, settled);
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
    ${ADD_USAGE};
  END IF;`;

/** A settlement as `SETTLE_SQL` reads it. */
export function settlementOrder({ chargeId, accountId, usage, cost, at }: Settlement) {
  return { chargeId, accountId, at, ...usage, cost: String(cost) };
}
