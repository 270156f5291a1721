/** Reads of money. */
import { rows, type Steps } from "../steps.ts";
import type { UsageDay } from "./records.ts";

export * from "./ledger.ts";

interface UsageRow {
  readonly day: bigint;
  readonly item: string;
  readonly charges: bigint;
  readonly prompt_tokens: bigint;
  readonly cached_tokens: bigint;
  readonly completion_tokens: bigint;
  readonly cost: bigint;
}

export function* usageDays({ accountId, fromDay }: { accountId: string; fromDay: number }): Steps<readonly UsageDay[]> {
  const found = yield* rows<UsageRow>(
    `SELECT day, item, charges, prompt_tokens, cached_tokens, completion_tokens, cost FROM usage_days
     WHERE account_id = $1 AND day >= $2 ORDER BY day, item`,
    accountId,
    fromDay,
  );
  return found.map((row) => ({
    day: Number(row.day),
    item: row.item,
    charges: Number(row.charges),
    promptTokens: Number(row.prompt_tokens),
    cachedTokens: Number(row.cached_tokens),
    completionTokens: Number(row.completion_tokens),
    cost: row.cost,
  }));
}
