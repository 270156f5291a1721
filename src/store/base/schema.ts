/**
 * The base's migrations, one per release that changed the schema before each domain had migrations of its own (migrate.ts). They
 * are released: none is ever edited, and a further change belongs to a domain.
 */
import type { Migration } from "../migration.ts";
import { CHARGES } from "./charges.ts";

export const BASE: readonly Migration[] = [
  [
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
  ],
  // A session's observations have its id in their key; '' means "no session_id".
  [
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
  ],
  // Money: an account's totals, the runs with what they hold or cost, the entries that prove both; and people. The tables of a
  // robot's path have no foreign key to accounts: the statement before has locked the account, PostgreSQL would look it up once
  // more for each row (0.19 ms of a settlement's 0.47), and the check of the ledger finds a row without an account.
  [
    `
  ALTER TABLE accounts ADD COLUMN payment_method INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE accounts ADD COLUMN credits INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE accounts ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE accounts ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0);
  ALTER TABLE accounts ADD COLUMN spend_limit INTEGER;
  ALTER TABLE accounts ADD COLUMN month INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE accounts ADD COLUMN month_settled INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE accounts ADD COLUMN password TEXT;
  ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;
  CREATE TABLE revisions (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT;
  INSERT INTO revisions (name, revision) VALUES ('keys', 0);
  CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    model TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    day INTEGER NOT NULL,
    month INTEGER NOT NULL,
    held INTEGER NOT NULL CHECK (held >= 0),
    expires_at INTEGER NOT NULL,
    prompt_rate INTEGER NOT NULL,
    cached_rate INTEGER NOT NULL,
    completion_rate INTEGER NOT NULL,
    settled_at INTEGER,
    prompt_tokens INTEGER,
    cached_tokens INTEGER,
    completion_tokens INTEGER,
    cost INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX runs_open ON runs (expires_at) WHERE settled_at IS NULL;
  CREATE INDEX runs_settled ON runs (settled_at) WHERE settled_at IS NOT NULL;
  CREATE TABLE entries (
    transfer TEXT NOT NULL,
    book TEXT NOT NULL,
    kind TEXT NOT NULL,
    account_id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    month INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (transfer, book)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX entries_account ON entries (account_id, month) WHERE book = 'account';
  CREATE TABLE usage_days (
    account_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    model TEXT NOT NULL,
    month INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, model)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE links (
    token_sha256 BLOB PRIMARY KEY,
    kind TEXT NOT NULL,
    account_id TEXT REFERENCES accounts (id),
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE sign_ins (
    token_sha256 BLOB PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX sign_ins_account ON sign_ins (account_id);
  CREATE TABLE device_logins (
    device_sha256 BLOB PRIMARY KEY,
    user_code_sha256 BLOB NOT NULL UNIQUE,
    device_name TEXT NOT NULL,
    address TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    interval_seconds INTEGER NOT NULL,
    polled_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    account_id TEXT REFERENCES accounts (id),
    sign_in_sha256 BLOB,
    key_public_id TEXT
  ) STRICT;
  CREATE TABLE attempts (name TEXT PRIMARY KEY, count INTEGER NOT NULL, resets_at INTEGER NOT NULL) STRICT;
  `,
    // Not compressing a reply that is kept for minutes saves 0.12 ms of 0.9; the constraint is one more look-up of a locked account.
    {
      postgres: `
  ALTER TABLE observations ALTER COLUMN reply SET STORAGE EXTERNAL;
  ALTER TABLE observations DROP CONSTRAINT observations_account_id_fkey;
  `,
    },
  ],
  // Fewer pages for a chunk to change: what is read once an hour is found by a scan, and one index serves both retentions.
  [
    `
  DROP INDEX entries_account;
  DROP INDEX robot_sessions_last;
  DROP INDEX robot_sessions_kept;
  CREATE INDEX robot_sessions_quiet ON robot_sessions (replies_kept, last_at);
  `,
    // A reply that fits into a page stays out of the table beside the table (0.03 ms).
    { postgres: "ALTER TABLE observations SET (toast_tuple_target = 8160);" },
  ],
  CHARGES,
];
