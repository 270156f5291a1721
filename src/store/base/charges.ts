/**
 * Migration 5. Runs become charges, since soon not only a robot's runs cost money. An observation's answer becomes neutral: a head
 * and rows in place of the JSON of one transport (robot/old-replies.ts). Domains get versions of their own (migrate.ts).
 *
 * A node of an older version cannot work beside this schema: its statements name tables that are gone, so it answers that billing
 * is down until it is replaced.
 */

import { convertReplies } from "../../robot/store/old-replies.ts";
import type { Migration } from "../migration.ts";

export const CHARGES: Migration = [
  `
  ALTER TABLE runs RENAME TO charges;
  ALTER TABLE charges RENAME COLUMN model TO item;
  ALTER TABLE usage_days RENAME COLUMN model TO item;
  ALTER TABLE usage_days RENAME COLUMN runs TO charges;
  CREATE TABLE tendon_domains (name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;
  `,
  {
    sqlite: `
  DROP INDEX runs_open;
  DROP INDEX runs_settled;
  CREATE INDEX charges_open ON charges (expires_at) WHERE settled_at IS NULL;
  CREATE INDEX charges_settled ON charges (settled_at) WHERE settled_at IS NOT NULL;
  `,
    // The functions of older versions, which know the table of runs.
    postgres: `
  ALTER INDEX runs_pkey RENAME TO charges_pkey;
  ALTER INDEX runs_open RENAME TO charges_open;
  ALTER INDEX runs_settled RENAME TO charges_settled;
  DROP FUNCTION IF EXISTS tendon_apply(jsonb, boolean);
  DROP FUNCTION IF EXISTS tendon_hold(jsonb);
  DROP FUNCTION IF EXISTS tendon_release(jsonb);
  DROP FUNCTION IF EXISTS tendon_settle_chunk(jsonb);
  `,
  },
  // SQLite cannot drop a NOT NULL, so the table is made anew on both engines.
  `
  DROP INDEX observations_alone;
  DROP INDEX observations_alone_kept;
  ALTER TABLE observations RENAME TO old_observations;
  CREATE TABLE observations (
    account_id TEXT NOT NULL,
    model TEXT NOT NULL,
    session_id TEXT NOT NULL,
    observation_id TEXT NOT NULL,
    digest BLOB CHECK (length(digest) = 32),
    generation_id TEXT NOT NULL,
    step INTEGER,
    head TEXT,
    rows BLOB,
    at INTEGER NOT NULL,
    PRIMARY KEY (account_id, model, session_id, observation_id)
  ) STRICT;
  `,
  // As for the reply in migrations 3 and 4.
  {
    postgres: `
  ALTER TABLE observations ALTER COLUMN head SET STORAGE EXTERNAL;
  ALTER TABLE observations ALTER COLUMN rows SET STORAGE EXTERNAL;
  ALTER TABLE observations SET (toast_tuple_target = 8160);
  `,
  },
  convertReplies,
  `
  DROP TABLE old_observations;
  CREATE INDEX observations_alone ON observations (at) WHERE session_id = '';
  CREATE INDEX observations_alone_kept ON observations (at) WHERE session_id = '' AND head IS NOT NULL;
  `,
  // The primary key's own name, which the old table had.
  { postgres: "ALTER INDEX observations_pkey1 RENAME TO observations_pkey;" },
];
