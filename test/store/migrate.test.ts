/** Migrations of a domain of its own, and databases that a newer tendon wrote. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { DOMAINS } from "../../src/service/domains.ts";
import { Problem } from "../../src/std/problem.ts";
import type { Domains } from "../../src/store/domain.ts";
import type { Migration } from "../../src/store/migration.ts";
import { lookAtPostgres, openPostgresStore } from "../../src/store/postgres/store.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { closeSqlite } from "../../src/store/sqlite/statements.ts";
import { lookAtDatabase } from "../../src/store/sqlite/store.ts";
import { changes, type Steps } from "../../src/store/steps.ts";
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

/** This program's domains, and one with tables of its own. */
function domains(...migrations: readonly Migration[]): Domains {
  return { ...DOMAINS, things: { reads: {}, writes: {}, notDurable: [], migrations } };
}

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
    test("a domain's migrations run once each, after those of the base", async () => {
      await using at = await place(name);
      expect(await opened(name, at, domains(MADE))).toBeUndefined();
      expect(await opened(name, at, domains(MADE, FILLED))).toBeUndefined();
      expect(await opened(name, at, domains(MADE, FILLED))).toBeUndefined();
      expect(await at.rows("SELECT id, size FROM things")).toEqual([{ id: "one", size: 9_007_199_254_740_993n }]);
      expect(await at.rows("SELECT name, version FROM tendon_domains WHERE name = 'things'")).toEqual([
        { name: "things", version: 2n },
      ]);
    });

    test("a migration that fails leaves nothing of itself, and the next start tries it again", async () => {
      await using at = await place(name);
      expect(await opened(name, at, domains(MADE))).toBeUndefined();
      expect(await opened(name, at, domains(MADE, BROKEN))).toContain("nowhere");
      expect(await at.rows("SELECT name, version FROM tendon_domains WHERE name = 'things'")).toEqual([
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
      await at.corrupt(name === "SQLite" ? "PRAGMA user_version = 6" : "UPDATE tendon_schema SET version = 6");
      expect(await opened(name, at, domains(MADE, FILLED))).toContain("newer tendon (schema 6, this one knows 5)");
    });
  });
}
