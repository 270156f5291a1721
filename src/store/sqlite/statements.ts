/** Statements on a connection of SQLite. Texts are those of PostgreSQL (steps.ts); only our own texts are translated. */
import type { Database, Statement as Prepared, SQLQueryBindings } from "bun:sqlite";
import type { Statement } from "../steps.ts";

/**
 * `$n` becomes `?n`, because bun:sqlite numbers `$n` by first appearance, silently wrong. There is one writer, so no lock.
 */
export function forSqlite(text: string): string {
  return text
    .replace(/json_array_elements(_text)?\(\$(\d+)::text::json\)/g, "json_each(?$2)")
    .replace(/\$(\d+)/g, "?$1")
    .replace(/ FOR NO KEY UPDATE( SKIP LOCKED)?/g, "");
}

/** Prepared once per connection: bun:sqlite itself keeps only twenty. */
const prepared = new WeakMap<Database, Map<string, Prepared<unknown, SQLQueryBindings[]>>>();

/** Closes a connection with its statements: SQLite keeps it open until the last one is finalized. */
export function closeSqlite(db: Database): void {
  for (const statement of prepared.get(db)?.values() ?? []) statement.finalize();
  prepared.delete(db);
  db.close();
}

export function onSqlite(db: Database): (statement: Statement) => unknown {
  const known = prepared.get(db) ?? new Map<string, Prepared<unknown, SQLQueryBindings[]>>();
  prepared.set(db, known);
  return ({ text, values, wants }) => {
    let statement = known.get(text);
    if (!statement) {
      statement = db.prepare<unknown, SQLQueryBindings[]>(forSqlite(text));
      known.set(text, statement);
    }
    return wants === "rows" ? statement.all(...values) : Number(statement.run(...values).changes);
  };
}
