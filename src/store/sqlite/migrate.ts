/** The schema of an SQLite database. */
import type { Database } from "bun:sqlite";
import { migrate as missing, type SchemaEngine, schemaState } from "../migrate.ts";
import type { Migration } from "../schema.ts";
import { drive, first } from "../steps.ts";
import { onSqlite } from "./statements.ts";

const ENGINE: SchemaEngine = {
  name: "sqlite",
  fresh: "name an empty folder with --data",
  translate: (schema) => schema,
  *hasTable(name) {
    return (yield* first("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1", name)) !== undefined;
  },
};

/** Runs all missing migrations, or none; the text says why not. Two processes that start at once do it one after the other. */
export function migrate(db: Database, migrations?: readonly Migration[]): string | undefined {
  const run = db.transaction(() => drive(missing(ENGINE, migrations), onSqlite(db)));
  return run.immediate();
}

/** The reason why this program cannot use the database. */
export function refusal(db: Database): string | undefined {
  const state = drive(schemaState(ENGINE), onSqlite(db));
  return typeof state === "object" ? state.refusal : undefined;
}
