/** Migrations on both engines, and databases that this version refuses. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { DOMAINS } from "../../src/service/domains.ts";
import { openStore } from "../../src/service/store.ts";
import { Problem } from "../../src/std/problem.ts";
import type { Domains } from "../../src/store/domain.ts";
import type { Migration } from "../../src/store/migrate.ts";
import { lookAtPostgres, openPostgresStore } from "../../src/store/postgres/store.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { closeSqlite } from "../../src/store/sqlite/statements.ts";
import { lookAtDatabase } from "../../src/store/sqlite/store.ts";
import { changes, type Steps } from "../../src/store/steps.ts";
import { funded } from "../account/fake-store.ts";
import { ENGINES, type EngineName, type Place, place, startServer, stopServer } from "./engines.ts";

beforeAll(startServer, 60_000);
afterAll(stopServer);

const MADE: Migration = ["CREATE TABLE things (id TEXT PRIMARY KEY, size INTEGER NOT NULL) STRICT;"];
const FILLED: Migration = [
  function* fill(): Steps<void> {
    yield* changes("INSERT INTO things (id, size) VALUES ($1, $2)", "one", 9_007_199_254_740_993n);
  },
];
const BROKEN: Migration = ["CREATE TABLE more (id TEXT PRIMARY KEY) STRICT;", "INSERT INTO nowhere VALUES (1);"];

/** The second migration of a later version, which changes a released table. */
const SECOND: Migration = [
  `ALTER TABLE accounts ADD COLUMN country TEXT;
   UPDATE accounts SET country = 'unknown';`,
  { sqlite: "CREATE INDEX only_sqlite ON accounts (country);", postgres: "COMMENT ON TABLE accounts IS 'second';" },
];

/** This program's domains, and one with tables of its own. */
function domains(...migrations: readonly Migration[]): Domains {
  return { ...DOMAINS, things: { reads: {}, writes: {}, notDurable: [], migrations } };
}

const LATER: Domains = { ...DOMAINS, base: { ...DOMAINS.base, migrations: [...DOMAINS.base.migrations, SECOND] } };

/** Opens and closes a store of these domains; says why it cannot be used. */
async function opened(engine: EngineName, at: Place, of: Domains): Promise<string | undefined> {
  if (engine === "PostgreSQL") {
    const store = await openPostgresStore(of, at.environment.DATABASE_URL ?? "");
    if (store instanceof Problem) return store.message;
    await store.close();
    return undefined;
  }
  const db = new Database(join(at.dir, "tendon.sqlite"), { create: true, strict: true, safeIntegers: true });
  try {
    return migrate(db, of);
  } catch (error) {
    return String(error);
  } finally {
    closeSqlite(db);
  }
}

async function looked(engine: EngineName, at: Place): Promise<unknown> {
  const found = await (engine === "PostgreSQL"
    ? lookAtPostgres(DOMAINS, at.environment.DATABASE_URL ?? "")
    : lookAtDatabase(DOMAINS, at.dir));
  return found instanceof Problem ? found.message : found;
}

for (const { name, absent, title } of ENGINES) {
  describe.skipIf(absent)(title, () => {
    test("a second migration of the schema runs once, on a database with rows and on a new one", async () => {
      await using at = await place(name);
      const store = await at.open();
      await store.accounts.accountAdd(funded("a1", "one@example.org"));
      await store.close();
      expect([await opened(name, at, LATER), await opened(name, at, LATER)]).toEqual([undefined, undefined]);
      expect(await at.rows("SELECT id, country FROM accounts")).toEqual([{ id: "a1", country: "unknown" }]);
      expect(await at.rows("SELECT name, version FROM tendon_versions")).toEqual([{ name: "base", version: 2n }]);
      await using fresh = await place(name);
      expect(await opened(name, fresh, LATER)).toBeUndefined();
      expect(await fresh.rows("SELECT count(country) AS rows FROM accounts")).toEqual([{ rows: 0n }]);
    });

    test("a domain's migrations run once each, after those of the base", async () => {
      await using at = await place(name);
      expect(await opened(name, at, domains(MADE))).toBeUndefined();
      expect(await opened(name, at, domains(MADE, FILLED))).toBeUndefined();
      expect(await opened(name, at, domains(MADE, FILLED))).toBeUndefined();
      expect(await at.rows("SELECT id, size FROM things")).toEqual([{ id: "one", size: 9_007_199_254_740_993n }]);
      expect(await at.rows("SELECT name, version FROM tendon_versions WHERE name = 'things'")).toEqual([
        { name: "things", version: 2n },
      ]);
    });

    test("a migration that fails leaves nothing of itself, and the next start tries it again", async () => {
      await using at = await place(name);
      expect(await opened(name, at, domains(MADE))).toBeUndefined();
      expect(await opened(name, at, domains(MADE, BROKEN))).toContain("nowhere");
      expect(await at.rows("SELECT name, version FROM tendon_versions WHERE name = 'things'")).toEqual([
        { name: "things", version: 1n },
      ]);
      expect(await opened(name, at, domains(MADE, FILLED))).toBeUndefined();
    });

    test("a database with a newer version of the base or of a domain, or with a domain that is not known, is refused", async () => {
      await using at = await place(name);
      expect(await looked(name, at)).toBe("absent");
      expect(await opened(name, at, domains(MADE, FILLED))).toBeUndefined();
      const unknown = 'it was written by a newer tendon (it has tables of "things", which this one does not know)';
      expect([await opened(name, at, DOMAINS), await looked(name, at)]).toEqual([
        expect.stringContaining(unknown),
        expect.stringContaining(unknown),
      ]);
      expect(await opened(name, at, domains(MADE))).toContain('schema 2 of "things", this one knows 1');
      expect(await opened(name, at, domains(MADE, FILLED))).toBeUndefined();
      await at.corrupt("UPDATE tendon_versions SET version = 6 WHERE name = 'base'");
      expect(await opened(name, at, domains(MADE, FILLED))).toContain(
        'newer tendon (schema 6 of "base", this one knows 1)',
      );
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
