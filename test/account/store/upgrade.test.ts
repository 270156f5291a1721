/** Accounts of before it was kept whether an operator has confirmed their e-mail. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ENGINES, place, startServer, stopServer } from "../../store/engines.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("those that an operator made, paid or trusted are confirmed; who may have signed up by himself is asked about", async () => {
      await using at = await place(name);
      await (await at.open()).close();
      await at.corrupt("ALTER TABLE accounts DROP COLUMN verified");
      await at.corrupt("DELETE FROM tendon_domains WHERE name = 'accounts'");
      for (const [id, password, paymentMethod, credits] of [
        ["made", "NULL", 0, 0],
        ["paid", "'hash'", 0, 5],
        ["trusted", "'hash'", 1, 0],
        ["unknown", "'hash'", 0, 0],
      ]) {
        await at.corrupt(
          `INSERT INTO accounts (id, email, created_at, password, payment_method, credits)
           VALUES ('${id}', '${id}@example.org', 1, ${password}, ${paymentMethod}, ${credits})`,
        );
      }
      const accounts = await (await at.open()).accounts.list();
      if (!Array.isArray(accounts)) throw new Error("no accounts");
      expect(accounts.map(({ id, verified }) => [id, verified])).toEqual([
        ["made", true],
        ["paid", true],
        ["trusted", true],
        ["unknown", false],
      ]);
    }, 60_000);
  });
}
