/** Connections to a real PostgreSQL server that break while statements are on their way. */
import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/limits.ts";
import { systemClock } from "../../../src/std/clock.ts";
import { Pool, Unanswered } from "../../../src/store/postgres/pool.ts";
import { first, type Steps } from "../../../src/store/steps.ts";
import { CutProxy } from "../../program/cut-proxy.ts";
import { onPostgres } from "../engines.ts";
import { PostgresServer } from "../postgres-server.ts";

const CLIENTS = 32;
const CUTS = 10;
const CONNECTIONS = 8;

/** A pool that reaches its server over a proxy. */
async function connected() {
  const server = await PostgresServer.start("fsync=off");
  const proxy = await CutProxy.before(server.port);
  const pool = new Pool(proxy.through(server.url("postgres")), systemClock, { connections: CONNECTIONS });
  return {
    proxy,
    pool,
    ask: () => pool.rows("SELECT $1::text AS said", ["x"]),
    [Symbol.asyncDispose]: async () => {
      await pool.close();
      await proxy[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

onPostgres(() => {
  test("connections that break under load do not stay broken", async () => {
    await using at = await connected();
    let over = false;
    const client = async () => {
      while (!over) if ((await at.ask()) instanceof Unanswered) await Bun.sleep(5);
    };
    const load = Array.from({ length: CLIENTS }, client);
    for (let cut = 0; cut < CUTS; cut += 1) {
      while ((await at.ask()) instanceof Unanswered) await Bun.sleep(5);
      at.proxy.cut();
      await Bun.sleep(20);
      at.proxy.mend();
    }
    over = true;
    await Promise.all(load);
    // Enough at once for every connection to be asked.
    const answers = await Promise.all(Array.from({ length: CLIENTS }, at.ask));
    expect(answers).toEqual(Array(CLIENTS).fill([{ said: "x" }]));
  }, 60_000);

  test("a server that was frozen keeps no connection of the pools that were given up", async () => {
    await using server = await PostgresServer.start("fsync=off");
    const pool = new Pool(server.url("postgres"), systemClock, { connections: CONNECTIONS });
    let over = false;
    const client = async () => {
      while (!over) if ((await pool.rows("SELECT 1 AS n", [])) instanceof Unanswered) await Bun.sleep(5);
    };
    const load = Array.from({ length: CLIENTS }, client);
    await Bun.sleep(300);
    server.signal("SIGSTOP");
    // Long enough for two pools to be given up: one that answers nothing, one that cannot connect.
    await Bun.sleep(LIMITS.storeAnswerMs + 2 * LIMITS.storeConnectMs);
    server.signal("SIGCONT");
    await Bun.sleep(3 * LIMITS.storeConnectMs);
    over = true;
    await Promise.all(load);
    const count = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'tendon'";
    const rows = await pool.rows(count, []);
    await pool.close();
    expect(rows).toEqual([{ n: BigInt(CONNECTIONS) }]);
  }, 60_000);

  test("a connection that breaks within a transaction ends that one alone, and nothing of it is kept", async () => {
    await using at = await connected();
    await at.pool.rows("CREATE TABLE t (n INT)", []);
    const insert = (middle: () => void) =>
      at.pool.transaction(function* (): Steps<string> {
        yield* first("INSERT INTO t VALUES (1) RETURNING n");
        middle();
        yield* first("INSERT INTO t VALUES (2) RETURNING n");
        return "done";
      }, "read write");
    const cut = () => {
      at.proxy.cut();
      at.proxy.mend();
    };
    for (let time = 0; time < CUTS; time += 1) {
      expect(await insert(cut)).toMatchObject({ sent: true });
      while ((await at.ask()) instanceof Unanswered) await Bun.sleep(5);
    }
    const failing = await at.pool.transaction(function* (): Steps<string> {
      yield* first("INSERT INTO t VALUES (3) RETURNING n");
      yield* first("SELECT 1 / 0");
      return "done";
    }, "read write");
    expect(failing).toMatchObject({ sent: false });
    expect(await insert(() => {})).toBe("done");
    expect(await at.pool.rows("SELECT n FROM t ORDER BY n", [])).toEqual([{ n: 1 }, { n: 2 }]);
  }, 60_000);
});
