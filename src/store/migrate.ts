/**
 * Brings a database's schema up to date; forwards only. The base (base/schema.ts) has one sequence of migrations, and each domain
 * may have one of its own, so that two domains can change their tables without agreeing on numbers.
 *
 * The base's version stands where the engine keeps it; those of the domains in `tendon_domains`, which the base makes. A database
 * is refused when any of them is higher than this program knows, or of a domain that it does not know: a newer tendon wrote it.
 */
import { BASE } from "./base/schema.ts";
import type { Domains } from "./domain.ts";
import { type Migration, partsFor } from "./migration.ts";
import { changes, rows, type Steps } from "./steps.ts";

/** The version of the base that makes `tendon_domains`. */
const DOMAINS_SINCE = 5;

/** What migrating needs of an engine. */
export interface SchemaEngine {
  readonly name: "sqlite" | "postgres";
  /** From the types of SQLite's STRICT tables to its own. */
  translate(schema: string): string;
  /** The version of the base; 0: tendon never used this database. */
  version(): Steps<number>;
  setVersion(version: number): Steps<void>;
}

/** All migrations that are missing. The text says why the database cannot be used. To be run in one transaction. */
export function* migrate(engine: SchemaEngine, domains: Domains, base = BASE): Steps<string | undefined> {
  const newer = yield* newerSchema(engine, domains, base);
  if (newer !== undefined) return newer;
  const version = yield* engine.version();
  if (version < base.length) {
    yield* apply(engine, base.slice(version));
    yield* engine.setVersion(base.length);
  }
  const versions = yield* domainVersions(base.length);
  for (const [name, { migrations = [] }] of Object.entries(domains)) {
    const known = versions.get(name) ?? 0;
    if (known === migrations.length) continue;
    yield* apply(engine, migrations.slice(known));
    yield* changes(
      "INSERT INTO tendon_domains (name, version) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET version = excluded.version",
      name,
      migrations.length,
    );
  }
  return undefined;
}

/** Says so when a newer version of tendon wrote the database; changes nothing. */
export function* newerSchema(engine: SchemaEngine, domains: Domains, base = BASE): Steps<string | undefined> {
  const version = yield* engine.version();
  if (version > base.length) return newerText(`schema ${version}, this one knows ${base.length}`);
  for (const [name, found] of yield* domainVersions(version)) {
    const domain = domains[name];
    if (!domain) return newerText(`it has tables of "${name}", which this one does not know`);
    const known = domain.migrations?.length ?? 0;
    if (found > known) return newerText(`schema ${found} of "${name}", this one knows ${known}`);
  }
  return undefined;
}

function newerText(what: string): string {
  return `it was written by a newer tendon (${what}); use that version`;
}

function* domainVersions(baseVersion: number): Steps<ReadonlyMap<string, number>> {
  if (baseVersion < DOMAINS_SINCE) return new Map();
  const found = yield* rows<{ name: string; version: bigint }>(
    "SELECT name, version FROM tendon_domains ORDER BY name",
  );
  return new Map(found.map(({ name, version }) => [name, Number(version)]));
}

function* apply(engine: SchemaEngine, migrations: readonly Migration[]): Steps<void> {
  for (const migration of migrations) {
    for (const part of partsFor(migration, engine.name, engine.translate)) {
      if (typeof part === "string") yield* changes(part);
      else yield* part();
    }
  }
}
