/** The store beside other nodes and other sessions: which rows are locked, in which order, and for how long. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import postgres from "postgres";
import { accountAdd } from "../../../src/account/store/accounts.ts";
import { hold } from "../../../src/charge/store/charges.ts";
import { holdsExpire, usageForget } from "../../../src/charge/store/retention.ts";
import { chunksForget } from "../../../src/robot/store/retention.ts";
import { settleChunk } from "../../../src/robot/store/robot.ts";
import { DOMAINS } from "../../../src/service/domains.ts";
import { systemClock } from "../../../src/std/clock.ts";
import { functionsOf } from "../../../src/store/postgres/migrate.ts";
import { Pool, Unanswered } from "../../../src/store/postgres/pool.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { migrate } from "../../../src/store/sqlite/migrate.ts";
import { onSqlite } from "../../../src/store/sqlite/statements.ts";
import { drive, first, type Steps } from "../../../src/store/steps.ts";
import { StoreDown } from "../../../src/store/store.ts";
import { funded } from "../../account/fake-store.ts";
import { CutProxy } from "../../program/cut-proxy.ts";
import { onPostgres, place, startServer, stopServer, usable } from "../engines.ts";
import { PostgresServer } from "../postgres-server.ts";
import { AT, answered, newCharge, settled } from "../rows.ts";

test("a part of expiring or forgetting is a few statements, however many rows it is: others wait for its end", () => {
  using db = new Database(":memory:", { strict: true, safeIntegers: true });
  migrate(db);
  const execute = onSqlite(db);
  let statements = 0;
  const counted = <T>(steps: Steps<T>): T =>
    drive(steps, (statement) => {
      statements += 1;
      return execute(statement);
    });
  for (let n = 0; n < 300; n += 1) {
    const accountId = `a${n}`;
    const session = { accountId, model: "m1", sessionId: "s" };
    drive(accountAdd(funded(accountId, `${n}@example.org`)), execute);
    drive(hold(newCharge(`gen_${n}`, { accountId })), execute);
    const observation = answered(String(n), session);
    drive(settleChunk(settled(`gen_${n}`, { accountId, session, observation })), execute);
    drive(hold(newCharge(`r${n}`, { accountId })), execute);
  }
  const before = AT + 1_000;
  const parts: readonly (() => Steps<"done" | "more">)[] = [
    () => holdsExpire({ before }),
    () => usageForget({ before }),
    () => chunksForget({ repliesBefore: before, recordsBefore: before }),
  ];
  for (const part of parts) {
    statements = 0;
    expect([counted(part()), statements < 10]).toEqual(["more", true]);
    while (counted(part()) === "more");
  }
  const left =
    "SELECT (SELECT COUNT(*) FROM charges) + (SELECT COUNT(*) FROM observations) AS rows, SUM(held) AS held FROM accounts";
  expect(drive(first(left), execute)).toEqual({ rows: 0n, held: 0n });
});

onPostgres(() => {
  beforeAll(startServer, 60_000);
  afterAll(stopServer);

  /** A store with the accounts `a` and `B`, and a session of somebody else. */
  async function beside() {
    const at = await place("PostgreSQL");
    const store = await at.open();
    for (const id of ["a", "B"]) await store.accounts.accountAdd(funded(id, `${id}@example.org`));
    const url = at.environment.DATABASE_URL ?? "";
    const other = postgres(url, { max: 1 });
    const group = postgres(url, { max: 1 });
    return {
      url,
      store,
      other,
      group,
      lock: (id: string) => other.unsafe(`SELECT id FROM accounts WHERE id = '${id}' FOR NO KEY UPDATE NOWAIT`),
      /** Until a statement waits for a lock. */
      waited: async () => {
        const query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        // A transaction sees the activity of the moment in which it first looked, unless it forgets that.
        while ((await other.unsafe(query)).length === 0) await other.unsafe("SELECT pg_stat_clear_snapshot()");
      },
      [Symbol.asyncDispose]: async () => {
        await other.end();
        await group.end();
        await at[Symbol.asyncDispose]();
      },
    };
  }

  test("accounts are locked in the order of their ids' bytes, whatever the language of the database", async () => {
    await using at = await beside();
    await at.other.unsafe("BEGIN");
    await at.lock("B");
    const orders = ["a", "B"].map((accountId) => {
      return {
        order: "charges.hold",
        ...DOMAINS.charges.hot.hold.order(newCharge(`charge of ${accountId}`, { accountId })),
      };
    });
    // A lane asks for both in the same way, but this connection waits for a lock as long as it takes.
    const group = at.group.unsafe(`SELECT ${functionsOf(DOMAINS).apply}($1::text::jsonb, false) AS outcomes`, [
      JSON.stringify(orders),
    ]);
    const outcomes = group.execute();
    await at.waited();
    // The group waits for B and has not taken a.
    expect(await at.lock("a")).toHaveLength(1);
    await at.other.unsafe("COMMIT");
    expect((await outcomes)[0]?.outcomes).toEqual(["held", "held"]);
  }, 60_000);

  test("an account that somebody keeps locked holds up nobody else's robots", async () => {
    await using at = await beside();
    await at.other.unsafe("BEGIN");
    await at.lock("a");
    const locked = at.store.charges.hold(newCharge("r1", { accountId: "a" }));
    const free = at.store.charges.hold(newCharge("r2", { accountId: "B" }));
    expect(await free).toBe("held");
    expect(await at.store.charges.hold(newCharge("r3", { accountId: "B" }))).toBe("held");
    await at.other.unsafe("COMMIT");
    expect(await locked).toBe("held");
  }, 60_000);

  test("the locks of a node that vanished within a transaction are gone before who waits for them gives up", async () => {
    await using at = await beside();
    await using proxy = await CutProxy.before(Number(new URL(at.url).port));
    const vanished = new Pool(proxy.through(at.url), systemClock, { connections: 1 });
    const { promise: locked, resolve } = Promise.withResolvers<void>();
    const ended = vanished.transaction(function* (): Steps<void> {
      yield* first("SELECT id FROM accounts WHERE id = 'a' FOR NO KEY UPDATE");
      proxy.silence();
      resolve();
      yield* first("SELECT 1");
    }, "read write");
    await locked;
    expect(await at.store.charges.hold(newCharge("r1", { accountId: "a" }))).toBe("held");
    expect(await ended).toBeInstanceOf(Unanswered);
    await vanished.close();
  }, 60_000);

  test("a server that became a standby is not healthy; when it writes again, all goes on", async () => {
    await using server = await PostgresServer.start("fsync=off");
    const store = usable(await openPostgresStore(DOMAINS, server.url("postgres")));
    await store.accounts.accountAdd(funded("a1", "one@example.org"));
    for (const on of [true, false]) {
      await server.down();
      await server.standby(on);
      await server.up();
      const down = { reason: "the database server only replays the log of another one" };
      expect(await store.ping()).toEqual(on ? expect.objectContaining(down) : undefined);
      expect(await store.charges.hold(newCharge("r1"))).toEqual(on ? expect.any(StoreDown) : "held");
      expect(await store.accounts.spendLimit({ accountId: "a1", limit: 9_000n })).toEqual(
        on ? expect.any(StoreDown) : "changed",
      );
    }
    await store.close();
  }, 60_000);
});
