/** Statements in SQL text that SQLite and PostgreSQL share: parameters are written `$1`, `$2`. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { forSqlite } from "./sql.ts";

/** Prepared once per connection and kept by bun:sqlite. */
export function query<Row>(db: Database, shared: string) {
  return db.query<Row, SQLQueryBindings[]>(forSqlite(shared));
}

/** Whether the statement changed a row. */
export function changed(db: Database, shared: string, ...values: SQLQueryBindings[]): boolean {
  return query(db, shared).run(...values).changes > 0;
}
