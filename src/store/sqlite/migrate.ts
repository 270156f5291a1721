/** Brings the schema of an SQLite database up to date. */
import type { Database } from "bun:sqlite";
import type { Domains } from "../domain.ts";
import { migrate as missing, newerSchema as newer, type SchemaEngine } from "../migrate.ts";
import { changes, drive, first } from "../steps.ts";
import { onSqlite } from "./statements.ts";

/** The base's version is the database's own number. */
const ENGINE: SchemaEngine = {
  name: "sqlite",
  translate: (schema) => schema,
  *version() {
    const row = yield* first<{ user_version: number | bigint }>("PRAGMA user_version");
    return Number(row?.user_version ?? 0);
  },
  *setVersion(version) {
    // A pragma takes no parameters; the number is our own.
    yield* changes(`PRAGMA user_version = ${version}`);
  },
};

/** All that is missing, or nothing; the text says why it cannot. Two processes that start at once do it one after the other. */
export function migrate(db: Database, domains: Domains): string | undefined {
  const run = db.transaction(() => drive(missing(ENGINE, domains), onSqlite(db)));
  return run.immediate();
}

/** Says so when a newer version of tendon wrote the database. */
export function newerSchema(db: Database, domains: Domains): string | undefined {
  return drive(newer(ENGINE, domains), onSqlite(db));
}
