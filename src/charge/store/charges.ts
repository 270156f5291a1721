/** The domain of money: holds, settlements, credits, usage, and the check of the ledger. */
import { dayOf, monthStart } from "../../std/calendar.ts";
import type { DomainOf, Hot, Slice } from "../../store/domain.ts";
import { type Row, recordOf } from "../../store/record.ts";
import { changes, first, rows, type Steps } from "../../store/steps.ts";
import { ledgerCheck } from "./ledger.ts";
import type { ChargeKey, Credit, HoldOutcome, HoldRefusal, NewCharge, UsageDay } from "./records.ts";
import { holdsExpire, usageForget } from "./retention.ts";
import { monthCost, transfer } from "./settle.ts";

/** The names in a text: a prefix for columns of the account's row, and the fields of the question. */
interface Names {
  readonly row: string;
  readonly account: string;
  readonly amount: string;
  readonly month: string;
  readonly day: string;
}

/** An expression for the reason against a hold of the amount in the month, in the order of the interface; NULL without one. */
function refusal({ row, amount, ...charge }: Names): string {
  const spent = `CASE WHEN ${row}month = ${charge.month} THEN ${row}month_settled ELSE ${monthCost(charge)} END`;
  return `CASE
    WHEN ${row}payment_method = 0 AND ${row}credits - ${row}settled <= 0 THEN 'payment_required'
    WHEN ${row}credits - ${row}settled - ${row}held < ${amount} THEN 'insufficient_credit'
    WHEN ${row}spend_limit < ${spent} + ${row}held + ${amount} THEN 'spend_limit_exceeded'
  END`;
}

const REFUSAL = refusal({ row: "", account: "$accountId", amount: "$amount", month: "$month", day: "$day" });

/** Checks and hold in one step; `holdPostgres` does the same in one function. */
export function* hold(charge: NewCharge): Steps<HoldOutcome> {
  const { rates, ...fields } = charge;
  const held = yield* changes(
    `UPDATE accounts SET held = held + $amount
     WHERE id = $accountId AND NOT EXISTS (SELECT 1 FROM charges WHERE id = $chargeId) AND (${REFUSAL}) IS NULL`,
    fields,
  );
  if (held === 0) {
    if (yield* first<object>("SELECT id FROM charges WHERE id = $1", charge.chargeId)) return "held";
    // Without a reason now, another node has released money since.
    return (yield* refused(fields)) ?? "spend_limit_exceeded";
  }
  yield* changes(
    `INSERT INTO charges (id, account_id, item, submitted_at, day, month, held, expires_at, prompt_rate, cached_rate, completion_rate)
     VALUES ($chargeId, $accountId, $item, $at, $day, $month, $amount, $expiresAt, $prompt, $cachedPrompt, $completion)`,
    { ...fields, ...rates },
  );
  return "held";
}

function* refused(
  asked: Pick<NewCharge, "accountId" | "amount" | "month" | "day">,
): Steps<HoldRefusal | "account_unknown" | undefined> {
  const { accountId, amount, month, day } = asked;
  const text = `SELECT ${REFUSAL} AS refusal FROM accounts WHERE id = $accountId`;
  const row = yield* first<{ refusal: HoldRefusal | null }>(text, { accountId, amount, month, day });
  return row ? (row.refusal ?? undefined) : "account_unknown";
}

/** The answer that a hold of the amount (nano-dollars) in the month would get now. */
function* affords(asked: {
  accountId: string;
  amount: bigint;
  month: number;
}): Steps<Exclude<HoldOutcome, "held"> | "affords"> {
  return (yield* refused({ ...asked, day: dayOf(monthStart(asked.month)) })) ?? "affords";
}

const REFUSAL_POSTGRES = refusal({
  row: "a.",
  account: "a.id",
  amount: "amount",
  month: "charge_month",
  day: "(o->>'day')::bigint",
});

const holdPostgres: Hot<NewCharge> = {
  sql: `
DECLARE
  a accounts%ROWTYPE;
  amount bigint := (o->>'amount')::bigint;
  charge_month bigint := (o->>'month')::bigint;
  refusal text;
BEGIN
  SELECT * INTO a FROM accounts WHERE id = o->>'accountId' FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 'account_unknown'; END IF;
  refusal := ${REFUSAL_POSTGRES};
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

/** Gives the held money back; nothing is charged. */
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

const releasePostgres: Hot<ChargeKey> = {
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

export function* credit(paid: Credit): Steps<"credited" | "account_unknown"> {
  const { accountId, transferId, amount } = paid;
  const known = yield* first<object>("SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE", accountId);
  if (!known) return "account_unknown";
  if ((yield* transfer(transferId, "credit", "funding", paid)) > 0) {
    yield* changes("UPDATE accounts SET credits = credits + $2 WHERE id = $1", accountId, amount);
  }
  return "credited";
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
  hot: { hold: holdPostgres, release: releasePostgres },
} as const satisfies DomainOf<typeof reads, typeof writes>;

export type ChargeStore = Slice<typeof charges>;
