/** `ledger check` names the first row that is off: each kind of row is damaged behind the store's back, on both engines. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Store } from "../../../src/service/domains.ts";
import { funded } from "../../account/fake-store.ts";
import { ENGINES, place, startServer, stopServer } from "../../store/engines.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

/** What is done to the rows, and the words that name it. */
const DAMAGES: readonly (readonly [sql: string, ...named: string[]])[] = [
  [
    "UPDATE entries SET amount = amount + 1 WHERE transfer = 'gen_1' AND book = 'revenue'",
    "transfer gen_1",
    "sum to 1",
  ],
  ["DELETE FROM entries WHERE transfer = 'gen_1' AND book = 'revenue'", "transfer gen_1", "1 entries"],
  [
    "UPDATE entries SET book = 'funding' WHERE transfer = 'gen_1' AND book = 'revenue'",
    "transfer gen_1",
    "in the book funding",
  ],
  ["UPDATE entries SET account_id = 'a2' WHERE transfer = 'gen_1' AND book = 'revenue'", "transfer gen_1", "account"],
  ["UPDATE entries SET month = 202610 WHERE transfer = 'gen_1' AND book = 'revenue'", "transfer gen_1", "month"],
  ["UPDATE entries SET kind = 'forward' WHERE transfer = 'gen_1' AND book = 'revenue'", "transfer gen_1", "kind"],
  ["UPDATE entries SET account_id = 'a2' WHERE transfer = 'a1' AND book = 'funding'", "transfer a1", "account"],
  ["UPDATE entries SET month = 202610 WHERE transfer = 'a1' AND book = 'funding'", "transfer a1", "month"],
  ["UPDATE entries SET amount = amount * 2 WHERE transfer = 'gen_1'", "charge gen_1", "its settlement moves -1040"],
  ["UPDATE entries SET account_id = 'a2' WHERE transfer = 'gen_1'", "charge gen_1", "of another account"],
  ["UPDATE entries SET account_id = 'a9' WHERE transfer = 'gen_1'", "transfer gen_1", "no account a9"],
  ["UPDATE charges SET account_id = 'a9' WHERE id = 'gen_3'", "charge gen_3", "no account a9"],
  ["UPDATE usage_days SET account_id = 'a9'", "usage of m1", "no account a9"],
  ["UPDATE entries SET month = 202610 WHERE transfer = 'gen_1'", "charge gen_1", "or month"],
  ["DELETE FROM entries WHERE transfer = 'gen_1'", "charge gen_1", "has no settlement"],
  ["UPDATE entries SET amount = amount * 2 WHERE transfer = 'a1'", "account a1", "credits is"],
  ["UPDATE charges SET cost = cost - 1 WHERE id = 'gen_1'", "charge gen_1", "cost 519", "rates is 520"],
  ["UPDATE charges SET prompt_tokens = 99 WHERE id = 'gen_1'", "charge gen_1", "rates is 517"],
  ["UPDATE charges SET cached_tokens = 41 WHERE id = 'gen_1'", "charge gen_1", "rates is 518"],
  ["UPDATE charges SET completion_tokens = 31 WHERE id = 'gen_1'", "charge gen_1", "rates is 530"],
  ["UPDATE charges SET prompt_rate = 4 WHERE id = 'gen_1'", "charge gen_1", "rates is 580"],
  ["UPDATE charges SET held = 519 WHERE id = 'gen_1'", "charge gen_1", "more than the 519"],
  ["DELETE FROM charges WHERE id = 'gen_1'", "settlement gen_1"],
  ["UPDATE charges SET settled_at = NULL WHERE id = 'gen_1'", "settlement gen_1"],
  ["DELETE FROM charges WHERE id = 'gen_3'", "account a1", "held is 600"],
  ["UPDATE charges SET held = 601 WHERE id = 'gen_3'", "account a1", "sum to 601"],
  ["UPDATE accounts SET credits = credits + 1 WHERE id = 'a1'", "account a1", "credits is"],
  ["UPDATE accounts SET settled = settled - 1 WHERE id = 'a1'", "account a1", "settled is 1039"],
  ["UPDATE accounts SET held = held + 1 WHERE id = 'a1'", "account a1", "held is 601"],
  ["UPDATE accounts SET month_settled = 0 WHERE id = 'a1'", "account a1", "month_settled is 0"],
  ["UPDATE accounts SET month = 202610 WHERE id = 'a1'", "account a1", "its month is 202610, in which"],
  ["UPDATE usage_days SET cost = cost + 1 WHERE account_id = 'a1'", "account a1", "cost 1041", "ledger says 1040"],
  ["UPDATE usage_days SET charges = 1 WHERE account_id = 'a1'", "day 20775", "usage of 1 charges"],
  ["UPDATE usage_days SET charges = 3 WHERE account_id = 'a1'", "day 20775", "usage of 3 charges"],
  ["UPDATE usage_days SET prompt_tokens = 0 WHERE account_id = 'a1'", "day 20775"],
  ["UPDATE usage_days SET day = 20774 WHERE account_id = 'a1'", "m1", "0 charges"],
  ["UPDATE usage_days SET completion_tokens = 61 WHERE account_id = 'a1'", "day 20775"],
  ["DELETE FROM usage_days WHERE account_id = 'a1'", "the days of usage cost 0"],
];

/** Two chunks settled, a third one under way, another account beside it. */
async function fill(store: Store): Promise<void> {
  await store.accounts.accountAdd(funded("a1", "one@example.org"));
  await store.accounts.accountAdd(funded("a2", "two@example.org"));
  for (const chargeId of ["gen_1", "gen_2", "gen_3"]) {
    const charge = {
      chargeId,
      accountId: "a1",
      item: "m1",
      amount: 600n,
      at: 1,
      day: 20_775,
      month: 202_611,
      expiresAt: 9,
    };
    await store.charges.hold({ ...charge, rates: { prompt: 3n, cachedPrompt: 1n, completion: 10n } });
    if (chargeId === "gen_3") continue;
    const usage = { promptTokens: 100, cachedTokens: 40, completionTokens: 30 };
    const left = { session: undefined, observation: undefined };
    expect(await store.robot.settleChunk({ chargeId, accountId: "a1", usage, cost: 520n, ...left, at: 2 })).toBe(
      "kept",
    );
  }
}

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("a sound ledger is told so; every damaged row is named", async () => {
      for (const [sql, ...named] of DAMAGES) {
        await using at = await place(name);
        const store = await at.open();
        await fill(store);
        expect(await store.charges.ledgerCheck()).toEqual({ entries: 8n, sum: 0n, problem: undefined });
        await at.corrupt(sql);
        const report = await store.charges.ledgerCheck();
        const problem = "problem" in report ? (report.problem ?? "nothing") : "down";
        for (const words of named) expect([sql, problem]).toEqual([sql, expect.stringContaining(words)]);
      }
    }, 60_000);
  });
}
