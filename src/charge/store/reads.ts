/** Reads of money. */
import { dayOf, monthStart } from "../../std/calendar.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { first, rows, type Steps } from "../../store/steps.ts";
import type { HoldOutcome, UsageDay } from "./records.ts";
import { monthCost } from "./settle.ts";

export * from "./ledger.ts";

const SPENT = monthCost({ account: "$accountId", month: "$month", day: "$day" });

/** What a hold of the amount in the month would be answered now: the same conditions as in writes.ts and hot.ts. */
export function* affords({
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

export function* usageDays({ accountId, fromDay }: { accountId: string; fromDay: number }): Steps<readonly UsageDay[]> {
  const found = yield* rows<Row>(
    `SELECT day, item, charges, prompt_tokens, cached_tokens, completion_tokens, cost FROM usage_days
     WHERE account_id = $1 AND day >= $2 ORDER BY day, item`,
    accountId,
    fromDay,
  );
  return found.map(usageDay);
}
