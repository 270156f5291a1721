/** Brings the schema of an SQLite database up to date; forwards only. */
import type { Database } from "bun:sqlite";
import { assert } from "../std/assert.ts";
import { STEPS } from "./schema.ts";

/** All steps or none; the text says why it cannot. Two processes that start at once do it one after the other. */
export function migrate(db: Database): string | undefined {
  const newer = newerSchema(db);
  if (newer !== undefined || schemaVersion(db) === STEPS.length) return newer;
  const run = db.transaction(() => {
    // Asked again: another process may have been here since.
    for (const step of STEPS.slice(schemaVersion(db))) db.run(step);
    // A pragma takes no parameters; the number is our own.
    db.run(`PRAGMA user_version = ${STEPS.length}`);
  });
  run.immediate();
  return undefined;
}

/** Says so when a newer version of tendon wrote the database. */
export function newerSchema(db: Database): string | undefined {
  const version = schemaVersion(db);
  return version <= STEPS.length ? undefined : newerText(version);
}

export function newerText(version: number): string {
  return `it was written by a newer tendon (schema ${version}, this one knows ${STEPS.length}); use that version`;
}

function schemaVersion(db: Database): number {
  const row = db.query<{ user_version: number | bigint }, []>("PRAGMA user_version").get();
  assert(row !== null, "SQLite answers its schema version");
  return Number(row.user_version);
}
