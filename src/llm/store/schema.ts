/** The tables of language models (released migrations are never edited). */
import type { Migration } from "../../store/migration.ts";

export const MIGRATIONS: readonly Migration[] = [
  [
    `
  CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    model TEXT NOT NULL,
    key TEXT,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    state TEXT NOT NULL,
    owner TEXT,
    job INTEGER NOT NULL,
    turn INTEGER,
    request TEXT,
    object TEXT,
    estimated INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX responses_key ON responses (account_id, key);
  CREATE INDEX responses_running ON responses (owner) WHERE state = 'running';
  CREATE INDEX responses_jobs ON responses (account_id, state) WHERE job = 1 AND ended_at IS NULL;
  CREATE INDEX responses_queue ON responses (turn, id) WHERE state = 'queued';
  CREATE INDEX responses_ended ON responses (ended_at) WHERE ended_at IS NOT NULL;
  CREATE TABLE llm_owners (owner TEXT PRIMARY KEY, beat INTEGER NOT NULL) STRICT;
  `,
  ],
];
