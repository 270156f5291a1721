/** The schema and the functions of a PostgreSQL database. */
import type { Domains } from "../domain.ts";
import { migrate, type SchemaEngine, schemaState } from "../migrate.ts";
import { first, type Steps } from "../steps.ts";
import { deploy, type Functions } from "./functions.ts";

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

/** All that is missing, in one transaction; the text says why the database cannot be used. */
export function* migratePostgres(domains: Domains, functions: Functions): Steps<string | undefined> {
  yield* first("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK);
  const problem = yield* migrate(ENGINE, domains);
  if (problem === undefined) yield* deploy(functions);
  return problem;
}

/** The state of the schema; changes nothing. */
export function postgresState(domains: Domains): ReturnType<typeof schemaState> {
  return schemaState(ENGINE, domains);
}
