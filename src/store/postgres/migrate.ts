/** Brings the schema and the functions of a PostgreSQL database up to date. */
import type { Domains } from "../domain.ts";
import { migrate, newerSchema, type SchemaEngine } from "../migrate.ts";
import { changes, first, type Steps } from "../steps.ts";
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
  translate: schemaForPostgres,
  *version() {
    const there = yield* first("SELECT 1 FROM pg_tables WHERE tablename = 'tendon_schema'");
    if (!there) return 0;
    const row = yield* first<{ version: bigint }>("SELECT version FROM tendon_schema");
    return Number(row?.version ?? 0n);
  },
  *setVersion(version) {
    yield* changes("CREATE TABLE IF NOT EXISTS tendon_schema (version BIGINT NOT NULL)");
    if ((yield* changes("UPDATE tendon_schema SET version = $1", version)) > 0) return;
    yield* changes("INSERT INTO tendon_schema (version) VALUES ($1)", version);
  },
};

/** Any number that no other program locks; it keeps nodes that start at once one after the other. */
const MIGRATION_LOCK = 7_364_201_905;

/** All that is missing, in one transaction; the text says why the database cannot be used. */
export function* migratePostgres(domains: Domains, functions: Functions): Steps<string | undefined> {
  yield* first("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK);
  const problem = yield* migrate(ENGINE, domains);
  if (problem === undefined) yield* deploy(functions);
  return problem;
}

/** What there is, for a look that changes nothing. */
export function* postgresState(domains: Domains): Steps<"absent" | "whole" | { readonly newer: string }> {
  const newer = yield* newerSchema(ENGINE, domains);
  if (newer !== undefined) return { newer };
  return (yield* ENGINE.version()) === 0 ? "absent" : "whole";
}
