/**
 * Brings a database's schema up to date; forwards only. Each domain may have a sequence of migrations. The base's (base.ts) makes
 * every table that is released (schema.ts); a further domain may have its own tables, so that it needs no number of the base.
 *
 * How many of each sequence a database has stands in `tendon_versions`. A database is refused when that is more than this program
 * knows, or of a domain that it does not know: a newer tendon wrote it. One without that table that has accounts is of another
 * program, or of a version before the first release.
 */
import { changes, rows, type Steps } from "./steps.ts";

/** A change of the schema: its parts in order, in one transaction. A statement ends with a semicolon at the end of a line. */
export type Migration = readonly Part[];

/** Statements for both engines, for one of them, or steps that need a program. */
type Part = string | { readonly sqlite?: string; readonly postgres?: string } | (() => Steps<void>);

/** Domains by name. */
type Domains = Readonly<Record<string, { readonly migrations?: readonly Migration[] }>>;

/** What migrating needs of an engine. */
export interface SchemaEngine {
  readonly name: "sqlite" | "postgres";
  /** How the operator gives a database that is empty, for a refusal. */
  readonly fresh: string;
  /** From the types of SQLite's STRICT tables to those of the engine. */
  translate(schema: string): string;
  hasTable(name: string): Steps<boolean>;
}

/** Runs all migrations that are missing, in the caller's transaction. The text says why the database cannot be used. */
export function* migrate(engine: SchemaEngine, domains: Domains): Steps<string | undefined> {
  const state = yield* schemaState(engine, domains);
  if (typeof state === "object") return state.refusal;
  const versions = state === "absent" ? new Map<string, number>() : yield* versionsOf();
  if (state === "absent") {
    const table = "CREATE TABLE tendon_versions (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;";
    yield* apply(engine, [[table]]);
  }
  for (const [name, { migrations = [] }] of Object.entries(domains)) {
    const known = versions.get(name) ?? 0;
    if (known === migrations.length) continue;
    yield* apply(engine, migrations.slice(known));
    yield* changes(
      "INSERT INTO tendon_versions (name, version) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET version = excluded.version",
      name,
      migrations.length,
    );
  }
  return undefined;
}

/** `absent`: tendon never used this database. Changes nothing. */
export function* schemaState(
  engine: SchemaEngine,
  domains: Domains,
): Steps<"absent" | "usable" | { readonly refusal: string }> {
  if (!(yield* engine.hasTable("tendon_versions"))) {
    if (!(yield* engine.hasTable("accounts"))) return "absent";
    const older = "it was made by another program, or by a tendon from before the first release, which has no upgrade";
    return { refusal: `${older}; ${engine.fresh}, or use the program that made it` };
  }
  for (const [name, found] of yield* versionsOf()) {
    const domain = domains[name];
    if (!domain) return newer(`it has tables of "${name}", which this one does not know`);
    const known = domain.migrations?.length ?? 0;
    if (found > known) return newer(`schema ${found} of "${name}", this one knows ${known}`);
  }
  return "usable";
}

function newer(what: string): { readonly refusal: string } {
  return { refusal: `it was written by a newer tendon (${what}); use that version` };
}

function* versionsOf(): Steps<ReadonlyMap<string, number>> {
  const found = yield* rows<{ name: string; version: bigint | number }>(
    "SELECT name, version FROM tendon_versions ORDER BY name",
  );
  return new Map(found.map(({ name, version }) => [name, Number(version)]));
}

function* apply(engine: SchemaEngine, migrations: readonly Migration[]): Steps<void> {
  for (const part of migrations.flat()) {
    if (typeof part === "function") {
      yield* part();
      continue;
    }
    const text = typeof part === "string" ? part : (part[engine.name] ?? "");
    for (const statement of engine.translate(text).split(/;\s*(?:\n|$)/)) {
      if (statement.trim() !== "") yield* changes(statement.trim());
    }
  }
}
