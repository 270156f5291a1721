/**
 * The whole list of operations, against both engines: what one says, the other says. PostgreSQL is a real server; without one
 * its half is skipped and says so.
 */
import { afterAll, beforeAll, describe } from "bun:test";
import { accountsTests } from "../account/store/accounts.ts";
import { peopleTests } from "../account/store/people.ts";
import { moneyTests } from "../charge/store/money.ts";
import { chunksTests } from "../robot/store/chunks.ts";
import { ENGINES, startServer, stopServer } from "./engines.ts";

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
