/**
 * The check of the ledger: every total is computed again from its parts, every cost from usage and rates, and the first row that
 * differs is named. It reads one snapshot. SQL does the work, so that millions of charges need no memory here.
 */
import { first, type Steps } from "../../store/steps.ts";
import type { LedgerReport } from "./records.ts";

interface Rule {
  /** The first row that breaks the rule; its columns are the words of `problem`. */
  readonly text: string;
  readonly problem: (row: Readonly<Record<string, unknown>>) => string;
}

const SPENT = "('settlement', 'forward')";
/** The accounts' side of the entries. */
const OWN = "book = 'account'";

/** A cause comes before its consequences. */
const RULES: readonly Rule[] = [
  {
    text: `SELECT transfer, CAST(count(*) AS BIGINT) AS entries, CAST(sum(amount) AS BIGINT) AS sum,
             CASE WHEN sum(amount) <> 0 OR count(*) <> 2 THEN '' WHEN min(kind) <> max(kind) THEN 'kind'
               WHEN min(account_id) <> max(account_id) THEN 'account' ELSE 'month' END AS differing
           FROM entries GROUP BY transfer
           HAVING sum(amount) <> 0 OR count(*) <> 2 OR min(kind) <> max(kind) OR min(account_id) <> max(account_id)
             OR min(month) <> max(month) ORDER BY transfer LIMIT 1`,
    problem: (row) =>
      row.differing === ""
        ? `transfer ${row.transfer}: ${row.entries} entries that sum to ${row.sum}, expected two that sum to 0`
        : `transfer ${row.transfer}: its two entries differ in their ${row.differing}, expected the same in both`,
  },
  {
    text: `SELECT transfer, book, kind FROM entries
           WHERE (kind = 'credit' AND book NOT IN ('account', 'funding'))
              OR (kind IN ${SPENT} AND book NOT IN ('account', 'revenue')) ORDER BY transfer LIMIT 1`,
    problem: (row) => `transfer ${row.transfer}: an entry of kind ${row.kind} in the book ${row.book}`,
  },
  {
    text: `SELECT kind, id, account_id FROM (
             SELECT 'charge' AS kind, id, account_id FROM charges
             UNION ALL SELECT 'transfer', transfer, account_id FROM entries
             UNION ALL SELECT 'usage of', item, account_id FROM usage_days
           ) AS owned WHERE account_id NOT IN (SELECT id FROM accounts) ORDER BY 1, 2 LIMIT 1`,
    problem: (row) => `${row.kind} ${row.id}: there is no account ${row.account_id}`,
  },
  {
    text: "SELECT id, cost, held FROM charges WHERE settled_at IS NOT NULL AND cost > held ORDER BY id LIMIT 1",
    problem: (row) => `charge ${row.id}: it cost ${row.cost}, more than the ${row.held} that were held`,
  },
  {
    // Usage whose price is above the hold costs the hold (charge/charges.ts), and nothing else.
    text: `SELECT id, cost, held, price FROM (
             SELECT id, cost, held, (prompt_tokens - cached_tokens) * prompt_rate + cached_tokens * cached_rate
                    + completion_tokens * completion_rate AS price
             FROM charges WHERE settled_at IS NOT NULL
           ) AS priced WHERE CASE WHEN price > held THEN held ELSE price END <> cost ORDER BY id LIMIT 1`,
    problem: (row) =>
      `charge ${row.id}: it cost ${row.cost}, its usage at its rates is ${row.price}, and ${row.held} were held`,
  },
  {
    text: `SELECT charges.id, charges.cost, entries.amount FROM charges
           LEFT JOIN entries ON entries.transfer = charges.id AND entries.book = 'account'
           WHERE charges.settled_at IS NOT NULL AND (entries.transfer IS NULL OR entries.kind <> 'settlement'
             OR entries.amount <> -charges.cost OR entries.account_id <> charges.account_id OR entries.month <> charges.month)
           ORDER BY charges.id LIMIT 1`,
    problem: (row) =>
      row.amount === null
        ? `charge ${row.id}: it was settled at ${row.cost}, but has no settlement in the ledger`
        : `charge ${row.id}: it cost ${row.cost}, its settlement moves ${row.amount} or is of another account or month`,
  },
  {
    text: `SELECT entries.transfer FROM entries LEFT JOIN charges ON charges.id = entries.transfer
           WHERE entries.kind = 'settlement' AND (charges.id IS NULL OR charges.settled_at IS NULL)
           ORDER BY entries.transfer LIMIT 1`,
    problem: (row) => `settlement ${row.transfer}: there is no settled charge of that id`,
  },
  total(
    "credits",
    `SELECT account_id, sum(amount) AS found FROM entries WHERE ${OWN} AND kind = 'credit' GROUP BY account_id`,
  ),
  total(
    "settled",
    `SELECT account_id, -sum(amount) AS found FROM entries WHERE ${OWN} AND kind IN ${SPENT} GROUP BY account_id`,
  ),
  total("held", "SELECT account_id, sum(held) AS found FROM charges WHERE settled_at IS NULL GROUP BY account_id"),
  {
    // Its last settlement is of any month that a clock has shown.
    text: `SELECT id, accounts.month, settlements FROM accounts LEFT JOIN (
             SELECT account_id, CAST(count(*) AS BIGINT) AS settlements FROM entries WHERE ${OWN} AND kind IN ${SPENT} GROUP BY account_id
           ) AS found ON account_id = id
           WHERE (accounts.month <> 0 OR settlements > 0) AND NOT EXISTS (
             SELECT 1 FROM entries WHERE ${OWN} AND kind IN ${SPENT} AND account_id = accounts.id AND entries.month = accounts.month
           ) ORDER BY id LIMIT 1`,
    problem: (row) => `account ${row.id}: its month is ${row.month}, in which it has no settlement`,
  },
  total(
    "month_settled",
    `SELECT account_id, entries.month AS of_month, -sum(amount) AS found FROM entries
     WHERE ${OWN} AND kind IN ${SPENT} GROUP BY account_id, entries.month`,
    "AND of_month = accounts.month",
  ),
  {
    text: `SELECT account_id, month, CAST(sum(cost) AS BIGINT) AS cost, CAST(sum(spent) AS BIGINT) AS spent FROM (
             SELECT account_id, month, cost, 0 AS spent FROM usage_days
             UNION ALL SELECT account_id, month, 0, -amount FROM entries WHERE book = 'account' AND kind IN ${SPENT}
           ) AS both_sides GROUP BY account_id, month HAVING sum(cost) <> sum(spent) ORDER BY account_id, month LIMIT 1`,
    problem: (row) =>
      `account ${row.account_id}, month ${row.month}: the days of usage cost ${row.cost}, the ledger says ${row.spent}`,
  },
  {
    // After charges of a month were summed up, the usage of its days may exceed that of the charges left; it is never below.
    text: `SELECT coalesce(d.account_id, r.account_id) AS account_id, coalesce(d.day, r.day) AS day,
             coalesce(d.item, r.item) AS item, coalesce(d.charges, 0) AS charges, coalesce(r.charges, 0) AS found
           FROM usage_days AS d FULL JOIN (
             SELECT account_id, day, item, CAST(count(*) AS BIGINT) AS charges, sum(cost) AS cost,
               sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens, sum(completion_tokens) AS completion_tokens
             FROM charges WHERE settled_at IS NOT NULL GROUP BY account_id, day, item
           ) AS r ON d.account_id = r.account_id AND d.day = r.day AND d.item = r.item
           WHERE d.day IS NULL OR r.charges > d.charges OR r.cost > d.cost OR r.prompt_tokens > d.prompt_tokens
             OR r.cached_tokens > d.cached_tokens OR r.completion_tokens > d.completion_tokens
             OR ((r.day IS NULL OR r.charges < d.charges OR r.cost < d.cost OR r.prompt_tokens < d.prompt_tokens
                  OR r.cached_tokens < d.cached_tokens OR r.completion_tokens < d.completion_tokens)
               AND NOT EXISTS (SELECT 1 FROM entries WHERE kind = 'forward' AND entries.account_id = d.account_id
                 AND entries.month = d.month))
           ORDER BY 1, 2, 3 LIMIT 1`,
    problem: (row) =>
      `account ${row.account_id}, day ${row.day}, ${row.item}: its usage of ${row.charges} charges is not that of the ${row.found} charges`,
  },
];

/** A column of `accounts` is a sum, which `sums` computes again as `found` for each `account_id`. */
function total(column: string, sums: string, and = ""): Rule {
  return {
    text: `SELECT id, ${column} AS said, CAST(coalesce(found, 0) AS BIGINT) AS found
           FROM accounts LEFT JOIN (${sums}) AS sums ON account_id = id ${and}
           WHERE ${column} <> coalesce(found, 0) ORDER BY id LIMIT 1`,
    problem: (row) => `account ${row.id}: ${column} is ${row.said}, its rows sum to ${row.found}`,
  };
}

export function* ledgerCheck(): Steps<LedgerReport> {
  const totals = yield* first<{ entries: bigint; sum: bigint }>(
    "SELECT CAST(count(*) AS BIGINT) AS entries, CAST(coalesce(sum(amount), 0) AS BIGINT) AS sum FROM entries",
  );
  const { entries, sum } = totals ?? { entries: 0n, sum: 0n };
  for (const { text, problem } of RULES) {
    const row = yield* first<Readonly<Record<string, unknown>>>(text);
    if (row) return { entries, sum, problem: problem(row) };
  }
  return { entries, sum, problem: undefined };
}
