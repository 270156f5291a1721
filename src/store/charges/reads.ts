/** Reads of money. */
import { type Row, recordOf } from "../record.ts";
import { rows, type Steps } from "../steps.ts";
import type { UsageDay } from "./records.ts";

export * from "./ledger.ts";

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
