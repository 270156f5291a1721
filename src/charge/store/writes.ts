/** Writes of money: credits; a hold before the work, and its release. What settles a hold is settle.ts, within a surface's record. */
import { changes, first, rows, type Steps } from "../../store/steps.ts";
import type { ChargeKey, Credit, HoldOutcome, NewCharge } from "./records.ts";
import { monthCost } from "./settle.ts";
import { transfer } from "./transfer.ts";

export * from "./retention.ts";

const SPENT = monthCost({ account: "$accountId", month: "$month", day: "$day" });

/** Checks and hold in one step. PostgreSQL does both in one statement (hot.ts). */
export function* hold(charge: NewCharge): Steps<HoldOutcome> {
  const { rates, ...fields } = charge;
  const held = yield* changes(
    `UPDATE accounts SET held = held + $amount
     WHERE id = $accountId AND NOT EXISTS (SELECT 1 FROM charges WHERE id = $chargeId)
       AND (payment_method = 1 OR credits - settled > 0) AND credits - settled - held >= $amount
       AND (spend_limit IS NULL OR CASE WHEN month = $month THEN month_settled ELSE ${SPENT} END + held + $amount <= spend_limit)`,
    fields,
  );
  if (held === 0) return yield* refusal(charge);
  yield* changes(
    `INSERT INTO charges (id, account_id, item, submitted_at, day, month, held, expires_at, prompt_rate, cached_rate, completion_rate)
     VALUES ($chargeId, $accountId, $item, $at, $day, $month, $amount, $expiresAt, $prompt, $cachedPrompt, $completion)`,
    { ...fields, ...rates },
  );
  return "held";
}

function* refusal({ chargeId, accountId, amount }: NewCharge): Steps<HoldOutcome> {
  if (yield* first<object>("SELECT id FROM charges WHERE id = $1", chargeId)) return "held";
  const why = yield* first<{ payable: bigint; covered: bigint }>(
    `SELECT CASE WHEN payment_method = 1 OR credits - settled > 0 THEN 1 ELSE 0 END AS payable,
            CASE WHEN credits - settled - held >= $2 THEN 1 ELSE 0 END AS covered
     FROM accounts WHERE id = $1`,
    accountId,
    amount,
  );
  if (!why) return "account_unknown";
  if (BigInt(why.payable) === 0n) return "payment_required";
  return BigInt(why.covered) === 0n ? "insufficient_credit" : "spend_limit_exceeded";
}

/** Nothing is charged. PostgreSQL does this in one statement (hot.ts). */
export function* release({ chargeId, accountId }: ChargeKey): Steps<"released" | "unknown"> {
  const [charge] = yield* rows<{ held: bigint }>(
    "DELETE FROM charges WHERE id = $1 AND account_id = $2 AND settled_at IS NULL RETURNING held",
    chargeId,
    accountId,
  );
  if (!charge) return "unknown";
  yield* changes("UPDATE accounts SET held = held - $2 WHERE id = $1", accountId, charge.held);
  return "released";
}

export function* credit(paid: Credit): Steps<"credited" | "account_unknown"> {
  const { accountId, transferId, amount } = paid;
  const known = yield* first<object>("SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE", accountId);
  if (!known) return "account_unknown";
  if ((yield* transfer(transferId, "credit", "funding", paid)) > 0) {
    yield* changes("UPDATE accounts SET credits = credits + $2 WHERE id = $1", accountId, amount);
  }
  return "credited";
}
