/** The domain of money: holds, settlements, credits, usage, and the check of the ledger. */
import { dayOf, monthStart } from "../../std/calendar.ts";
import type { DomainOf, Slice } from "../../store/domain.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, rows, type Steps } from "../../store/steps.ts";
import * as hot from "./hot.ts";
import { ledgerCheck } from "./ledger.ts";
import type { ChargeKey, Credit, HoldOutcome, NewCharge, UsageDay } from "./records.ts";
import { holdsExpire, usageForget } from "./retention.ts";
import { monthCost, transfer } from "./settle.ts";

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

/** What a hold of the amount in the month would be answered now: on the same conditions. */
function* affords({
  accountId,
  amount,
  month,
}: {
  accountId: string;
  /** Nano-dollars. */
  amount: bigint;
  month: number;
}): Steps<Exclude<HoldOutcome, "held"> | "affords"> {
  const why = yield* first<{ payable: bigint; covered: bigint; within: bigint }>(
    `SELECT CASE WHEN payment_method = 1 OR credits - settled > 0 THEN 1 ELSE 0 END AS payable,
            CASE WHEN credits - settled - held >= $amount THEN 1 ELSE 0 END AS covered,
            CASE WHEN spend_limit IS NULL OR CASE WHEN month = $month THEN month_settled ELSE ${SPENT} END + held + $amount <= spend_limit
              THEN 1 ELSE 0 END AS within
     FROM accounts WHERE id = $accountId`,
    { accountId, amount, month, day: dayOf(monthStart(month)) },
  );
  if (!why) return "account_unknown";
  if (BigInt(why.payable) === 0n) return "payment_required";
  if (BigInt(why.covered) === 0n) return "insufficient_credit";
  return BigInt(why.within) === 0n ? "spend_limit_exceeded" : "affords";
}

const usageDay = recordOf<UsageDay>("day", "charges", "promptTokens", "cachedTokens", "completionTokens");

function* usageDays({ accountId, fromDay }: { accountId: string; fromDay: number }): Steps<readonly UsageDay[]> {
  const found = yield* rows<Row>(
    `SELECT day, item, charges, prompt_tokens, cached_tokens, completion_tokens, cost FROM usage_days
     WHERE account_id = $1 AND day >= $2 ORDER BY day, item`,
    accountId,
    fromDay,
  );
  return found.map(usageDay);
}

const reads = { affords, usageDays, ledgerCheck };

const writes = { hold, release, credit, holdsExpire, usageForget };

export const charges = {
  reads,
  writes,
  // A crash then gives the money back, which is right.
  notDurable: ["hold", "release"],
  snapshots: ["ledgerCheck"],
  hot: { hold: hot.hold, release: hot.release },
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type ChargeStore = Slice<typeof charges>;
