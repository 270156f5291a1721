/** The small size of `npm run prove llm-kill`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ENGINES } from "../store/engines.ts";
import { POSTGRES, PostgresServer } from "../store/postgres-server.ts";
import { llmKillRounds } from "./llm-kill.ts";

let postgresql: PostgresServer | undefined;

beforeAll(async () => {
  if (POSTGRES !== undefined) postgresql = await PostgresServer.start("fsync=off");
}, 60_000);

afterAll(async () => {
  await postgresql?.[Symbol.asyncDispose]();
});

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("kill -9 under live responses and jobs: every answer is there again, no job is lost, no key is sent twice", async () => {
      const { kills, live, jobs, calls } = await llmKillRounds(name === "SQLite" ? undefined : postgresql, 3, "small");
      expect([kills, live > 0, jobs > 0, calls > 0]).toEqual([3, true, true, true]);
    }, 120_000);
  });
}
