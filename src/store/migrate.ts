/**
 * Brings a database's schema (schema.ts) up to date; forwards only. `tendon_versions` has the number of migrations that ran.
 *
 * A database with more of them than this program knows is refused: a newer tendon wrote it. A database with accounts and without that
 * table is of another program, or of a version before the first release.
 */
import { MIGRATIONS, type Migration } from "./schema.ts";
import { changes, first, type Steps } from "./steps.ts";

export interface SchemaEngine {
  readonly name: "sqlite" | "postgres";
  /** The way to an empty database, for a refusal. */
  readonly fresh: string;
  /** Turns the types of SQLite's STRICT tables into those of the engine. */
  translate(schema: string): string;
  hasTable(name: string): Steps<boolean>;
}

/** Runs all migrations that are missing, in the caller's transaction. The text says why the database cannot be used. */
export function* migrate(
  engine: SchemaEngine,
  migrations: readonly Migration[] = MIGRATIONS,
): Steps<string | undefined> {
  const state = yield* schemaState(engine, migrations);
  if (typeof state === "object") return state.refusal;
  if (state === "absent") {
    yield* apply(engine, ["CREATE TABLE tendon_versions (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;"]);
  }
  const known = yield* version();
  if (known === migrations.length) return undefined;
  for (const migration of migrations.slice(known)) yield* apply(engine, migration);
  yield* changes(
    "INSERT INTO tendon_versions (name, version) VALUES ('base', $1) ON CONFLICT (name) DO UPDATE SET version = excluded.version",
    migrations.length,
  );
  return undefined;
}

/** `absent`: tendon never used this database. Changes nothing. */
export function* schemaState(
  engine: SchemaEngine,
  migrations: readonly Migration[] = MIGRATIONS,
): Steps<"absent" | "usable" | { readonly refusal: string }> {
  if (!(yield* engine.hasTable("tendon_versions"))) {
    if (!(yield* engine.hasTable("accounts"))) return "absent";
    const older = "it was made by another program, or by a tendon from before the first release, which has no upgrade";
    return { refusal: `${older}; ${engine.fresh}, or use the program that made it` };
  }
  const known = yield* version();
  if (known <= migrations.length) return "usable";
  const schemas = `schema ${known}, this one knows ${migrations.length}`;
  return { refusal: `it was written by a newer tendon (${schemas}); use that version` };
}

/** The number of migrations that ran. */
function* version(): Steps<number> {
  const row = yield* first<{ version: bigint }>("SELECT version FROM tendon_versions WHERE name = 'base'");
  return Number(row?.version ?? 0);
}

function* apply(engine: SchemaEngine, migration: Migration): Steps<void> {
  for (const part of migration) {
    const text = typeof part === "string" ? part : (part[engine.name] ?? "");
    for (const statement of engine.translate(text).split(/;\s*(?:\n|$)/)) {
      if (statement.trim() !== "") yield* changes(statement.trim());
    }
  }
}
