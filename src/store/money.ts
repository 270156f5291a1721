/**
 * Holds, settlements, and the entries that prove them.
 *
 * Every movement of money is a transfer: two entries, in two books, that sum to zero. A credit moves from `funding` to the
 * account, a settlement from the account to `revenue`. Entries are never changed; those of runs that are forgotten are added up
 * in one transfer per account and month.
 */
import { changes, first, listed, rows, type Steps } from "./steps.ts";
import type { ChunkRecord, NewRun, Reads, Refusal, UsageDay, Writes } from "./store.ts";

/** Runs that one step expires or forgets: other writes wait meanwhile. */
const STEP_MAX = 256;

type Book = "account" | "funding" | "revenue";
type Kind = "credit" | "settlement";

/** The two entries of a transfer to the account and its other book; 0 when the transfer is known. */
function* transfer(
  id: string,
  kind: Kind,
  other: Book,
  to: { readonly accountId: string; readonly amount: bigint; readonly month: number; readonly at: number },
): Steps<number> {
  return yield* changes(
    `INSERT INTO entries (transfer, book, kind, account_id, amount, month, at)
     VALUES ($1, 'account', $2, $3, $4, $6, $7), ($1, $8, $2, $3, $5, $6, $7) ON CONFLICT DO NOTHING`,
    id,
    kind,
    to.accountId,
    to.amount,
    -to.amount,
    to.month,
    to.at,
    other,
  );
}

export function* pay(credit: Parameters<Writes["credit"]>[0]): Steps<"credited" | "account_unknown"> {
  const { accountId, transferId, amount } = credit;
  const known = yield* first<object>("SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE", accountId);
  if (!known) return "account_unknown";
  if ((yield* transfer(transferId, "credit", "funding", credit)) > 0) {
    yield* changes("UPDATE accounts SET credits = credits + $2 WHERE id = $1", accountId, amount);
  }
  return "credited";
}

/** PostgreSQL has this in one statement: hot.ts. */
export function* hold(run: NewRun): Steps<"held" | "account_unknown" | Refusal> {
  if (yield* first<object>("SELECT id FROM runs WHERE id = $1", run.runId)) return "held";
  const held = yield* changes(
    `UPDATE accounts SET held = held + $2
     WHERE id = $1 AND (payment_method = 1 OR credits - settled > 0) AND credits - settled - held >= $2
       AND (spend_limit IS NULL OR CASE WHEN month >= $3 THEN month_settled ELSE 0 END + held + $2 <= spend_limit)`,
    run.accountId,
    run.amount,
    run.month,
  );
  if (held === 0) return yield* refusal(run);
  yield* changes(
    `INSERT INTO runs (id, account_id, model, submitted_at, day, month, held, expires_at, prompt_rate, cached_rate, completion_rate)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    run.runId,
    run.accountId,
    run.model,
    run.at,
    run.day,
    run.month,
    run.amount,
    run.expiresAt,
    run.rates.prompt,
    run.rates.cachedPrompt,
    run.rates.completion,
  );
  return "held";
}

function* refusal({ accountId, amount }: NewRun): Steps<"account_unknown" | Refusal> {
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

/** PostgreSQL has this in one statement: hot.ts. */
export function* release({ runId, accountId }: Parameters<Writes["release"]>[0]): Steps<"released" | "unknown"> {
  const [run] = yield* rows<{ held: bigint }>(
    "DELETE FROM runs WHERE id = $1 AND account_id = $2 AND settled_at IS NULL RETURNING held",
    runId,
    accountId,
  );
  if (!run) return "unknown";
  yield* changes("UPDATE accounts SET held = held - $2 WHERE id = $1", accountId, run.held);
  return "released";
}

/** The run's usage, price and entries. `again`: it was settled before. */
export function* settle({ runId, accountId, usage, cost, at }: ChunkRecord): Steps<"settled" | "again" | "not_held"> {
  const [run] = yield* rows<{ model: string; held: bigint; day: bigint; month: bigint }>(
    `UPDATE runs SET settled_at = $3, prompt_tokens = $4, cached_tokens = $5, completion_tokens = $6, cost = $7
     WHERE id = $1 AND account_id = $2 AND settled_at IS NULL AND held >= $7 RETURNING model, held, day, month`,
    runId,
    accountId,
    at,
    usage.promptTokens,
    usage.cachedTokens,
    usage.completionTokens,
    cost,
  );
  if (!run) {
    const known = yield* first<object>("SELECT id FROM runs WHERE id = $1 AND settled_at IS NOT NULL", runId);
    return known ? "again" : "not_held";
  }
  yield* changes(
    `UPDATE accounts SET settled = settled + $2, held = held - $3,
       month_settled = CASE WHEN month = $4 THEN month_settled + $2 WHEN month < $4 THEN $2 ELSE month_settled END,
       month = CASE WHEN month < $4 THEN $4 ELSE month END
     WHERE id = $1`,
    accountId,
    cost,
    run.held,
    run.month,
  );
  yield* transfer(runId, "settlement", "revenue", { accountId, amount: -cost, month: Number(run.month), at });
  yield* changes(
    `INSERT INTO usage_days (account_id, day, model, month, runs, prompt_tokens, cached_tokens, completion_tokens, cost)
     VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8)
     ON CONFLICT (account_id, day, model) DO UPDATE SET runs = usage_days.runs + 1,
       prompt_tokens = usage_days.prompt_tokens + excluded.prompt_tokens,
       cached_tokens = usage_days.cached_tokens + excluded.cached_tokens,
       completion_tokens = usage_days.completion_tokens + excluded.completion_tokens,
       cost = usage_days.cost + excluded.cost`,
    accountId,
    run.day,
    run.model,
    run.month,
    usage.promptTokens,
    usage.cachedTokens,
    usage.completionTokens,
    cost,
  );
  return "settled";
}

export function* holdsExpire({ before }: { before: number }): Steps<"done" | "more"> {
  const due = yield* locked(
    `SELECT id, account_id AS "accountId" FROM runs WHERE settled_at IS NULL AND expires_at < $1
     ORDER BY expires_at LIMIT ${STEP_MAX}`,
    before,
  );
  const these = `settled_at IS NULL AND id IN ${listed(1)}`;
  yield* changes(
    `UPDATE accounts SET held = accounts.held - gone.held
     FROM (SELECT account_id, SUM(held) AS held FROM runs WHERE ${these} GROUP BY account_id) AS gone
     WHERE accounts.id = gone.account_id`,
    due,
  );
  const released = yield* changes(`DELETE FROM runs WHERE ${these}`, due);
  return released < STEP_MAX ? "done" : "more";
}

/**
 * The ids of the runs that the text finds, as one list. Their accounts are locked in the order in which all lock who need several
 * of them, so that no run changes any more; one that another node took meanwhile is not there for the statements after this.
 */
function* locked(text: string, before: number): Steps<string> {
  const found = yield* rows<{ id: string; accountId: string }>(text, before);
  const accounts = new Set(found.map(({ accountId }) => accountId));
  yield* rows(
    `SELECT id FROM accounts WHERE id IN ${listed(1)} ORDER BY id FOR NO KEY UPDATE`,
    JSON.stringify([...accounts]),
  );
  return JSON.stringify(found.map(({ id }) => id));
}

export function* usageForget({ before }: { before: number }): Steps<"done" | "more"> {
  const old = yield* locked(
    `SELECT id, account_id AS "accountId" FROM runs WHERE settled_at < $1 ORDER BY settled_at LIMIT ${STEP_MAX}`,
    before,
  );
  for (const [book, sum] of [
    ["account", "-SUM(cost)"],
    ["revenue", "SUM(cost)"],
  ] satisfies [Book, string][]) {
    yield* changes(
      `INSERT INTO entries (transfer, book, kind, account_id, amount, month, at)
       SELECT 'forward.' || account_id || '.' || month, '${book}', 'forward', account_id, ${sum}, month, CAST($2 AS BIGINT)
       FROM runs WHERE id IN ${listed(1)} GROUP BY account_id, month
       ON CONFLICT (transfer, book) DO UPDATE SET amount = entries.amount + excluded.amount, at = excluded.at`,
      old,
      before,
    );
  }
  yield* changes(`DELETE FROM entries WHERE transfer IN ${listed(1)}`, old);
  const forgotten = yield* changes(`DELETE FROM runs WHERE id IN ${listed(1)}`, old);
  return forgotten < STEP_MAX ? "done" : "more";
}

interface UsageRow {
  readonly day: bigint;
  readonly model: string;
  readonly runs: bigint;
  readonly prompt_tokens: bigint;
  readonly cached_tokens: bigint;
  readonly completion_tokens: bigint;
  readonly cost: bigint;
}

export function* usageDays({ accountId, fromDay }: Parameters<Reads["usageDays"]>[0]): Steps<readonly UsageDay[]> {
  const found = yield* rows<UsageRow>(
    `SELECT day, model, runs, prompt_tokens, cached_tokens, completion_tokens, cost FROM usage_days
     WHERE account_id = $1 AND day >= $2 ORDER BY day, model`,
    accountId,
    fromDay,
  );
  return found.map((row) => ({
    day: Number(row.day),
    model: row.model,
    runs: Number(row.runs),
    promptTokens: Number(row.prompt_tokens),
    cachedTokens: Number(row.cached_tokens),
    completionTokens: Number(row.completion_tokens),
    cost: row.cost,
  }));
}
