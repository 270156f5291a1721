/** Hold and release as functions of PostgreSQL; their steps for SQLite are in charges.ts; one test file runs both. */
import type { Hot } from "../../store/domain.ts";
import type { ChargeKey, NewCharge } from "./records.ts";
import { monthCost } from "./settle.ts";

const SPENT = monthCost({ account: "a.id", month: "charge_month", day: "(o->>'day')::bigint" });

export const hold: Hot<NewCharge> = {
  sql: `
DECLARE
  a accounts%ROWTYPE;
  amount bigint := (o->>'amount')::bigint;
  charge_month bigint := (o->>'month')::bigint;
  refusal text;
BEGIN
  SELECT * INTO a FROM accounts WHERE id = o->>'accountId' FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 'account_unknown'; END IF;
  refusal := CASE
    WHEN a.payment_method = 0 AND a.credits - a.settled <= 0 THEN 'payment_required'
    WHEN a.credits - a.settled - a.held < amount THEN 'insufficient_credit'
    WHEN a.spend_limit < CASE WHEN a.month = charge_month THEN a.month_settled ELSE ${SPENT} END + a.held + amount
      THEN 'spend_limit_exceeded'
  END;
  IF refusal IS NOT NULL THEN
    -- A repeat must not be refused for what it holds itself.
    RETURN CASE WHEN EXISTS (SELECT 1 FROM charges WHERE id = o->>'chargeId') THEN 'held' ELSE refusal END;
  END IF;
  INSERT INTO charges (id, account_id, item, submitted_at, day, month, held, expires_at, prompt_rate, cached_rate, completion_rate)
  VALUES (o->>'chargeId', a.id, o->>'item', (o->>'at')::bigint, (o->>'day')::bigint, charge_month, amount,
    (o->>'expiresAt')::bigint, (o->>'promptRate')::bigint, (o->>'cachedRate')::bigint, (o->>'completionRate')::bigint)
  ON CONFLICT DO NOTHING;
  IF FOUND THEN UPDATE accounts SET held = held + amount WHERE id = a.id; END IF;
  RETURN 'held';
END`,
  order: ({ rates, amount, ...charge }) => ({
    ...charge,
    amount: String(amount),
    promptRate: String(rates.prompt),
    cachedRate: String(rates.cachedPrompt),
    completionRate: String(rates.completion),
  }),
};

export const release: Hot<ChargeKey> = {
  sql: `
DECLARE given bigint;
BEGIN
  PERFORM 1 FROM accounts WHERE id = o->>'accountId' FOR NO KEY UPDATE;
  DELETE FROM charges WHERE id = o->>'chargeId' AND account_id = o->>'accountId' AND settled_at IS NULL RETURNING held INTO given;
  IF NOT FOUND THEN RETURN 'unknown'; END IF;
  UPDATE accounts SET held = held - given WHERE id = o->>'accountId';
  RETURN 'released';
END`,
  order: (charge) => charge,
};
