/**
 * The whole list of operations, against both engines: what one says, the other says. PostgreSQL is a real server; without one
 * its half is skipped and says so.
 */
import { afterAll, beforeAll, describe } from "bun:test";
import { accountsTests } from "./accounts/accounts.ts";
import { moneyTests } from "./charges/money.ts";
import { ENGINES, startServer, stopServer } from "./engines.ts";
import { peopleTests } from "./people/people.ts";
import { chunksTests } from "./robot/chunks.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    accountsTests(name);
    moneyTests(name);
    chunksTests(name);
    peopleTests(name);
  });
}
