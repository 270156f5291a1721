/** The schema, one step per release that changes it. A step that has left the house is never edited. */
import type { Database } from "bun:sqlite";
import { assert } from "../std/assert.ts";

const STEPS: readonly string[] = [
  `
  CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE api_keys (
    public_id TEXT PRIMARY KEY,
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    account_id TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
  ) STRICT;
  CREATE INDEX api_keys_account ON api_keys (account_id);
  `,
  // Times are Unix seconds. A session's observations stand beside it in the key; '' is "no session_id".
  `
  CREATE TABLE robot_sessions (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    model TEXT NOT NULL,
    session_id TEXT NOT NULL,
    last_at INTEGER NOT NULL,
    replies_kept INTEGER NOT NULL,
    PRIMARY KEY (account_id, model, session_id)
  ) STRICT;
  CREATE INDEX robot_sessions_last ON robot_sessions (last_at);
  CREATE INDEX robot_sessions_kept ON robot_sessions (last_at) WHERE replies_kept = 1;
  CREATE TABLE observations (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    model TEXT NOT NULL,
    session_id TEXT NOT NULL,
    observation_id TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    generation_id TEXT NOT NULL,
    step INTEGER,
    reply TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (account_id, model, session_id, observation_id)
  ) STRICT;
  CREATE INDEX observations_alone ON observations (at) WHERE session_id = '';
  CREATE INDEX observations_alone_kept ON observations (at) WHERE session_id = '' AND reply IS NOT NULL;
  `,
];

/** Brings the schema up to date, all steps or none; the text says why it cannot. */
export function migrate(db: Database): string | undefined {
  const newer = newerSchema(db);
  if (newer !== undefined) return newer;
  const version = schemaVersion(db);
  const run = db.transaction(() => {
    for (const step of STEPS.slice(version)) db.run(step);
    // A pragma takes no parameters; the number is our own.
    db.run(`PRAGMA user_version = ${STEPS.length}`);
  });
  if (version < STEPS.length) run.immediate();
  return undefined;
}

/** Says so when a newer version of tendon wrote the database. */
export function newerSchema(db: Database): string | undefined {
  const version = schemaVersion(db);
  if (version <= STEPS.length) return undefined;
  return `it was written by a newer tendon (schema ${version}, this one knows ${STEPS.length}); use that version`;
}

function schemaVersion(db: Database): number {
  const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
  assert(row !== null, "SQLite answers its schema version");
  return row.user_version;
}
