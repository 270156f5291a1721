/** Migrations on both engines, and databases that this version refuses. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { DOMAINS } from "../../src/service/domains.ts";
import { openStore } from "../../src/service/store.ts";
import { Problem } from "../../src/std/problem.ts";
import { lookAtPostgres, openPostgresStore } from "../../src/store/postgres/store.ts";
import type { Migration } from "../../src/store/schema.ts";
import { MIGRATIONS } from "../../src/store/schema.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { closeSqlite } from "../../src/store/sqlite/statements.ts";
import { lookAtDatabase } from "../../src/store/sqlite/store.ts";
import { funded } from "../account/fake-store.ts";
import { ENGINES, type EngineName, type Place, place, startServer, stopServer } from "./engines.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

const KNOWN = MIGRATIONS.length;

/** A migration of a later version, which changes a released table. */
const LATER: Migration = [
  `ALTER TABLE accounts ADD COLUMN country TEXT;
   UPDATE accounts SET country = 'unknown';`,
  { sqlite: "CREATE INDEX only_sqlite ON accounts (country);", postgres: "COMMENT ON TABLE accounts IS 'second';" },
];
const BROKEN: Migration = ["CREATE TABLE more (id TEXT PRIMARY KEY) STRICT;", "INSERT INTO nowhere VALUES (1);"];

/** Opens and closes a store with these migrations after those of this version; says why it cannot be used. */
async function opened(engine: EngineName, at: Place, ...more: readonly Migration[]): Promise<string | undefined>;
/** The same with the first migrations alone. */
async function opened(engine: EngineName, at: Place, first: number): Promise<string | undefined>;
async function opened(engine: EngineName, at: Place, ...more: readonly (Migration | number)[]) {
  const [first] = more;
  const migrations =
    typeof first === "number" ? MIGRATIONS.slice(0, first) : [...MIGRATIONS, ...(more as readonly Migration[])];
  if (engine === "PostgreSQL") {
    const store = await openPostgresStore(DOMAINS, at.environment.DATABASE_URL ?? "", { migrations });
    if (store instanceof Problem) return store.message;
    await store.close();
    return undefined;
  }
  const db = new Database(join(at.dir, "tendon.sqlite"), { create: true, strict: true, safeIntegers: true });
  try {
    return migrate(db, migrations);
  } catch (error) {
    return String(error);
  } finally {
    closeSqlite(db);
  }
}

async function looked(engine: EngineName, at: Place): Promise<unknown> {
  const found = await (engine === "PostgreSQL"
    ? lookAtPostgres(at.environment.DATABASE_URL ?? "")
    : lookAtDatabase(at.dir));
  return found instanceof Problem ? found.message : found;
}

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("a later migration runs once, on a database with rows and on a new one", async () => {
      await using at = await place(name);
      const store = await at.open();
      await store.accounts.accountAdd(funded("a1", "one@example.org"));
      await store.close();
      expect([await opened(name, at, LATER), await opened(name, at, LATER)]).toEqual([undefined, undefined]);
      expect(await at.rows("SELECT id, country FROM accounts")).toEqual([{ id: "a1", country: "unknown" }]);
      expect(await at.rows("SELECT name, version FROM tendon_versions")).toEqual([
        { name: "base", version: BigInt(KNOWN + 1) },
      ]);
      await using fresh = await place(name);
      expect(await opened(name, fresh, LATER)).toBeUndefined();
      expect(await fresh.rows("SELECT count(country) AS rows FROM accounts")).toEqual([{ rows: 0n }]);
    });

    test("what the records of runs count is added to the totals of a database from before", async () => {
      await using at = await place(name);
      expect(await opened(name, at, 1)).toBeUndefined();
      const digest = name === "SQLite" ? "zeroblob(32)" : "decode(repeat('00', 32), 'hex')";
      for (const sql of [
        "INSERT INTO run_accounts VALUES ('a1', 5, 7 + 8, 1), ('a2', 0, 0, 0)",
        `INSERT INTO robot_runs VALUES ('r1', 'a1', 'arm', 'one', 1, 5, 1, 0, 0, 0, 1, '{"é":1}')`,
        "INSERT INTO robot_runs VALUES ('r2', 'a1', 'arm', 'two', 1, 0, 0, 15, 2, 1, NULL, NULL)",
        `INSERT INTO run_files VALUES ('r1', 'a', 'blob_1', 5, ${digest}, 1, 0)`,
        "INSERT INTO run_blobs (id, state, account_id, run_id, path, size, at) VALUES ('blob_2', 'coming', 'a1', 'r2', 'b', 8, 1)",
        `INSERT INTO run_uploads (id, account_id, run_id, path, blob_id, size, part_size, state, expires_at)
         VALUES ('up_1', 'a1', 'r2', 'c', 'blob_3', 7, 7, 'open', 9)`,
      ]) {
        await at.corrupt(sql);
      }
      const { runs } = await at.open();
      expect(await runs.runTotalsWrong()).toEqual([]);
      const stored = BigInt(5 + 4 * 1024 + '{"é":1}'.length + 1);
      expect(await at.rows("SELECT runs, stored, reserved FROM run_accounts WHERE account_id = 'a1'")).toEqual([
        { runs: 2n, stored, reserved: BigInt(15 + 1024) },
      ]);
    });

    test("a migration that fails leaves nothing of itself, and the next start tries it again", async () => {
      await using at = await place(name);
      expect(await opened(name, at)).toBeUndefined();
      expect(await opened(name, at, BROKEN)).toContain("nowhere");
      expect(await at.rows("SELECT name, version FROM tendon_versions")).toEqual([
        { name: "base", version: BigInt(KNOWN) },
      ]);
      expect(await opened(name, at, ["CREATE TABLE more (id TEXT PRIMARY KEY) STRICT;"])).toBeUndefined();
    });

    test("a database with a later schema is refused", async () => {
      await using at = await place(name);
      expect(await looked(name, at)).toBe("absent");
      expect(await opened(name, at, LATER)).toBeUndefined();
      const later = expect.stringContaining(`by a newer tendon (schema ${KNOWN + 1}, this one knows ${KNOWN})`);
      expect([await opened(name, at), await looked(name, at)]).toEqual([later, later]);
      expect(await opened(name, at, LATER)).toBeUndefined();
    });

    test("a database of before the first release is refused at the start, with what to do, and is not changed", async () => {
      await using at = await place(name);
      // The tables by which every version before the first release is known, and its mark.
      await at.corrupt("CREATE TABLE accounts (id TEXT PRIMARY KEY, email TEXT NOT NULL, created_at BIGINT NOT NULL)");
      await at.corrupt("CREATE TABLE tendon_domains (name TEXT PRIMARY KEY, version BIGINT NOT NULL)");
      await at.corrupt(name === "SQLite" ? "PRAGMA user_version = 5" : "CREATE TABLE tendon_schema (version BIGINT)");
      const fresh = name === "SQLite" ? "name an empty folder with --data" : "name an empty database in DATABASE_URL";
      const sentence = `it was made by another program, or by a tendon from before the first release, which has no upgrade; ${fresh}, or use the program that made it`;
      const store = await openStore({ dataDir: at.dir, databaseUrl: at.environment.DATABASE_URL }, "serve");
      expect(store).toMatchObject({ exit: 1, message: expect.stringContaining(`: ${sentence}`) });
      expect(await looked(name, at)).toEndWith(`: ${sentence}`);
      const tables =
        name === "SQLite"
          ? "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
          : "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY name";
      const found = (await at.rows(tables)).map((table) => table.name);
      expect(found).toEqual(["accounts", "tendon_domains", ...(name === "SQLite" ? [] : ["tendon_schema"])]);
    });
  });
}
