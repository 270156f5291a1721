/**
 * Holds and settlements on connections of their own (design section 6): one late statement drops no settlement in flight. A
 * settlement is durable whatever the server's default is (contract section 8).
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import postgres from "postgres";
import { LIMITS } from "../../../src/limits.ts";
import { DOMAINS } from "../../../src/service/domains.ts";
import { unanswered } from "../../../src/store/postgres/pool.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { funded } from "../../account/fake-store.ts";
import { CutProxy } from "../../program/cut-proxy.ts";
import { FakeClock } from "../../std/fake-clock.ts";
import { onPostgres, usable } from "../engines.ts";
import { PostgresServer } from "../postgres-server.ts";
import { newCharge, settled } from "../rows.ts";

onPostgres(() => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start("fsync=off", "synchronous_commit=off");
  }, 60_000);
  afterAll(() => server[Symbol.asyncDispose]());

  /** A store behind a proxy, whose time stands still, with the accounts `a` and `b` and a hold `gen_1` of `b`. */
  async function behind() {
    const clock = new FakeClock();
    const proxy = await CutProxy.before(server.port);
    const direct = await server.database();
    const store = usable(await openPostgresStore(DOMAINS, proxy.through(direct), { clock }));
    for (const id of ["a", "b"]) await store.accounts.accountAdd(funded(id, `${id}@example.org`));
    expect(await store.charges.hold(newCharge("gen_1", { accountId: "b" }))).toBe("held");
    const other = postgres(direct, { max: 1, onnotice: () => {} });
    return {
      clock,
      proxy,
      store,
      other,
      /** The money is settled while `late` gets no answer within its time. */
      async settleBeside(late: () => Promise<unknown>, asked: string) {
        const lateAsked = proxy.stop(asked);
        const outcome = late();
        await lateAsked;
        clock.advance(LIMITS.storeAnswerMs - 1);
        const settleAsked = proxy.stop("gen_1");
        const settling = store.robot.settleChunk(settled("gen_1", { accountId: "b" }));
        await settleAsked;
        clock.advance(1);
        const ended = await outcome;
        proxy.resume();
        return [ended, await settling];
      },
      [Symbol.asyncDispose]: async () => {
        await other.end();
        await store.close();
        await proxy[Symbol.asyncDispose]();
      },
    };
  }

  const LATE = { outcomeUnknown: true };

  test("a hold without an answer drops no settlement that is under way: it is sent once", async () => {
    await using at = await behind();
    const late = () => at.store.charges.hold(newCharge("gen_late", { accountId: "a" }));
    expect(await at.settleBeside(late, "gen_late")).toMatchObject([LATE, "kept"]);
    expect(at.proxy.times("gen_1")).toBe(2);
  }, 60_000);

  test("nor does a read, a write of another kind, or another account's settlement", async () => {
    for (const which of ["read", "write", "settlement"] as const) {
      await using at = await behind();
      await at.store.charges.hold(newCharge("gen_2", { accountId: "a" }));
      const late = {
        read: [() => at.store.accounts.accountById("nobody_1"), "nobody_1"],
        write: [() => at.store.accounts.spendLimit({ accountId: "nobody_2", limit: 5n }), "nobody_2"],
        settlement: [() => at.store.robot.settleChunk(settled("gen_2", { accountId: "a" })), "gen_2"],
      } as const;
      const [ask, asked] = late[which];
      expect(await at.settleBeside(ask, asked)).toMatchObject([LATE, "kept"]);
      expect([which, at.proxy.times("gen_1")]).toEqual([which, 2]);
    }
  }, 60_000);

  test("a row that somebody keeps locked delays the settlements of its account, and of no other", async () => {
    await using at = await behind();
    await at.store.charges.hold(newCharge("gen_2", { accountId: "a" }));
    await at.other.unsafe("BEGIN");
    await at.other.unsafe("SELECT id FROM accounts WHERE id = 'a' FOR UPDATE");
    const locked = at.store.robot.settleChunk(settled("gen_2", { accountId: "a" }));
    expect(await at.store.robot.settleChunk(settled("gen_1", { accountId: "b" }))).toBe("kept");
    await at.other.unsafe("COMMIT");
    // The lane's pause between two tries.
    at.clock.advance(LIMITS.storeBackoffMs);
    expect(await locked).toBe("kept");
  }, 60_000);

  test("every durable write commits synchronously, also where server and role say off; a hold does not", async () => {
    await using at = await behind();
    const role = "ALTER ROLE tendon SET synchronous_commit = off";
    const trigger = ["accounts", "charges", "entries", "robot_sessions"].map(
      (table) =>
        `CREATE TRIGGER note AFTER INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION note_commit('${table}');`,
    );
    await at.other.unsafe(`${role};
      CREATE TABLE commits (place TEXT, mode TEXT);
      CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO commits VALUES (TG_ARGV[0], current_setting('synchronous_commit')); RETURN NEW; END $$;
      ${trigger.join("\n")}`);
    const store = usable(await openPostgresStore(DOMAINS, server.url(at.other.options.database)));
    const modes = async (work: () => Promise<unknown>) => {
      await at.other.unsafe("DELETE FROM commits");
      await work();
      const rows = await at.other.unsafe("SELECT DISTINCT mode FROM commits ORDER BY mode");
      return rows.map(({ mode }) => mode);
    };
    expect(await modes(() => store.charges.hold(newCharge("gen_3", { accountId: "a" })))).toEqual(["off"]);
    expect(await modes(() => store.robot.settleChunk(settled("gen_3", { accountId: "a" })))).toEqual(["on"]);
    const session = { accountId: "a", model: "m", sessionId: "s", at: 1 };
    expect(await modes(() => store.robot.sessionOpen(session))).toEqual(["on"]);
    const credit = { accountId: "a", transferId: "c", amount: 5n, at: 1, month: 197_001 };
    expect(await modes(() => store.charges.credit(credit))).toEqual(["on"]);
    await store.close();
    await at.other.unsafe("ALTER ROLE tendon RESET synchronous_commit");
  }, 60_000);

  test("a settlement that was answered is there after a crash of a server whose default is off", async () => {
    await using own = await PostgresServer.start("synchronous_commit=off", "wal_writer_delay=10s", "fsync=off");
    const open = async () => usable(await openPostgresStore(DOMAINS, own.url("postgres")));
    const before = await open();
    await before.accounts.accountAdd(funded("a", "a@example.org"));
    await before.charges.hold(newCharge("gen_1", { accountId: "a" }));
    expect(await before.robot.settleChunk(settled("gen_1", { accountId: "a" }))).toBe("kept");
    await own.down();
    await before.close();
    await own.up();
    const after = await open();
    expect(await after.accounts.accountById("a")).toMatchObject({ settled: 520n });
    await after.close();
  }, 60_000);

  test("a connection that does not take synchronous_commit=on is refused at the start", async () => {
    await using proxy = await CutProxy.before(server.port);
    // The proxy acts as a connection pooler that passes no settings on.
    proxy.rename("synchronous_commit", "x.nchronous_commit");
    const store = await openPostgresStore(DOMAINS, proxy.through(await server.database()));
    expect(store).toMatchObject({ message: expect.stringContaining("synchronous_commit is 'off'") });
  }, 60_000);

  test("what ended after the statement was sent may be done: only the server's own refusal says that it is not", () => {
    const of = (code: string, severity?: string) =>
      unanswered(Object.assign(new Error("x"), { code, ...(severity ? { severity } : {}) })).sent;
    for (const code of ["CONNECTION_CLOSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"]) {
      expect([code, of(code)]).toEqual([code, true]);
    }
    for (const code of ["CONNECT_TIMEOUT", "ECONNREFUSED", "ENOTFOUND"])
      expect([code, of(code)]).toEqual([code, false]);
    for (const code of ["55P03", "57014", "40001", "53300", "57P03"])
      expect([code, of(code, "ERROR")]).toEqual([code, false]);
    // The server ends the connection, perhaps while a commit waits.
    for (const code of ["57P01", "57P02", "08006", "40003"]) expect([code, of(code, "FATAL")]).toEqual([code, true]);
  });
});
