/** The schema and the functions of a PostgreSQL database. */
import { createHash } from "node:crypto";
import { type Domains, everyWrite } from "../domain.ts";
import { migrate, type SchemaEngine, schemaState } from "../migrate.ts";
import type { Migration } from "../schema.ts";
import { changes, first, type Steps } from "../steps.ts";

/**
 * A schema text, whose types are those of a STRICT table of SQLite. Texts are compared by their bytes, as there: the order of a
 * language would be slow in every index.
 */
export function schemaForPostgres(text: string): string {
  return text
    .replace(/\bINTEGER\b/g, "BIGINT")
    .replace(/\bBLOB\b/g, "BYTEA")
    .replace(/\bTEXT\b/g, 'TEXT COLLATE "C"')
    .replace(/\) STRICT(, WITHOUT ROWID)?;/g, ");");
}

const ENGINE: SchemaEngine = {
  name: "postgres",
  fresh: "name an empty database in DATABASE_URL",
  translate: schemaForPostgres,
  *hasTable(name) {
    return (yield* first<{ there: boolean }>("SELECT to_regclass($1) IS NOT NULL AS there", name))?.there === true;
  },
};

/** A lock number that no other program uses. Nodes that start together migrate one after the other. */
const MIGRATION_LOCK = 7_364_201_905;

/** Runs the missing migrations in one transaction. The text says why the database cannot be used. */
export function* migratePostgres(functions: Functions, migrations?: readonly Migration[]): Steps<string | undefined> {
  yield* first("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK);
  const problem = yield* migrate(ENGINE, migrations);
  if (problem === undefined) yield* deploy(functions);
  return problem;
}

/** The state of the schema; changes nothing. */
export function postgresState(): ReturnType<typeof schemaState> {
  return schemaState(ENGINE);
}

/**
 * The hot operations of all domains as functions of PostgreSQL: a group of them is one statement, one round trip, one commit.
 *
 * A group first locks its accounts in the order of their ids, as every statement that needs several does. So there is no deadlock.
 *
 * The hash of their text is part of their names. A node creates the missing functions that it calls and changes none, so nodes of two
 * versions work on one database. Old functions stay until a migration changes a table that they name: a running node may call them.
 */
export interface Functions {
  /** The function that runs a group of orders. */
  readonly apply: string;
  /** The statements that create them all. */
  readonly statements: readonly string[];
}

const HASH_DIGITS = 8;

export function functionsOf(domains: Domains): Functions {
  // In the text that is hashed, zeros take the place of the hash.
  const hash = createHash("sha256")
    .update(texts(domains, "0".repeat(HASH_DIGITS)).join("\n"))
    .digest("hex");
  const suffix = hash.slice(0, HASH_DIGITS);
  return { apply: `tendon_apply_${suffix}`, statements: texts(domains, suffix) };
}

/** Creates the functions unless they are there; to be run under the lock of migrations. */
function* deploy({ apply, statements }: Functions): Steps<void> {
  const found = yield* first<{ there: boolean }>("SELECT to_regproc($1) IS NOT NULL AS there", apply);
  if (found?.there === true) return;
  for (const statement of statements) yield* changes(statement);
}

function texts(domains: Domains, suffix: string): string[] {
  const own: string[] = [];
  const cases: string[] = [];
  for (const { key, hot } of everyWrite(domains)) {
    if (!hot) continue;
    const name = `tendon_${key.replace(".", "_").toLowerCase()}_${suffix}`;
    own.push(`CREATE FUNCTION ${name}(o jsonb) RETURNS text LANGUAGE plpgsql AS $$${hot.sql} $$`);
    cases.push(`WHEN '${key}' THEN ${name}(o)`);
  }
  const apply = `
CREATE FUNCTION tendon_apply_${suffix}(orders jsonb, durable boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  o jsonb;
  outcomes text[] := '{}';
BEGIN
  -- This overrides the default of the server, the role or a connection pooler.
  IF durable THEN SET LOCAL synchronous_commit = on; ELSE SET LOCAL synchronous_commit = off; END IF;
  -- A single order locks its account by itself.
  IF jsonb_array_length(orders) > 1 THEN
    PERFORM 1 FROM accounts WHERE id IN (SELECT item->>'accountId' FROM jsonb_array_elements(orders) AS item)
      ORDER BY id FOR NO KEY UPDATE;
  END IF;
  FOR o IN SELECT item FROM jsonb_array_elements(orders) AS item LOOP
    outcomes := outcomes || CASE o->>'order'
      ${cases.join("\n      ")}
    END;
  END LOOP;
  RETURN to_jsonb(outcomes);
END $$`;
  return [...own, apply];
}
