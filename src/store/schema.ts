/**
 * Every table of the store, as its first release makes them. A released migration is never edited: it has run on existing databases. A
 * later change is a further migration in the list at the end (migrate.ts).
 *
 * Types are those of SQLite's STRICT tables. PostgreSQL has BIGINT for INTEGER, BYTEA for BLOB, and TEXT that is compared by its bytes
 * (postgres/migrate.ts). Times are Unix seconds (store.ts says of which clock), amounts nano-dollars, sizes bytes. Tokens, codes and
 * keys are kept as SHA-256.
 *
 * Tables that a robot's request writes have no foreign key to accounts. The statement before has locked the account, and PostgreSQL
 * would look it up again for each row (0.19 ms of a settlement's 0.47). The check of the ledger finds a row without an account.
 */

/** A change of the schema: its parts in order, in one transaction. A statement ends with a semicolon at the end of a line. */
export type Migration = readonly (string | { readonly sqlite?: string; readonly postgres?: string })[];

/** The store's own: readiness writes `probes`; `seen_time` is one row, which all processes move on. */
const STORE = `
  CREATE TABLE probes (
    id INTEGER PRIMARY KEY,
    writes INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE seen_time (one INTEGER PRIMARY KEY CHECK (one = 1), seconds INTEGER NOT NULL) STRICT;
`;

/** `held`, `credits`, `settled` and `month_settled` are totals of charges and entries. */
const ACCOUNTS = `
  CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    payment_method INTEGER NOT NULL DEFAULT 0,
    credits INTEGER NOT NULL DEFAULT 0,
    settled INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
    spend_limit INTEGER,
    month INTEGER NOT NULL DEFAULT 0,
    month_settled INTEGER NOT NULL DEFAULT 0,
    password TEXT,
    verified INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE api_keys (
    public_id TEXT PRIMARY KEY,
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    account_id TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    last_used_at INTEGER
  ) STRICT;
  CREATE INDEX api_keys_account ON api_keys (account_id);
  CREATE TABLE revisions (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT;
  INSERT INTO revisions (name, revision) VALUES ('keys', 0);
`;

const PEOPLE = `
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
    expires_at INTEGER NOT NULL,
    method TEXT NOT NULL DEFAULT 'password',
    proved_at INTEGER NOT NULL DEFAULT 0
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
  CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
  ) STRICT;
`;

/**
 * Money. A charge holds an amount until it is settled, at the rates of its row. A transfer is two entries that sum to 0. Reads of once
 * an hour scan a table: with fewer indexes a chunk changes fewer pages.
 */
const CHARGES = `
  CREATE TABLE charges (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    item TEXT NOT NULL,
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
  CREATE INDEX charges_open ON charges (expires_at) WHERE settled_at IS NULL;
  CREATE INDEX charges_settled ON charges (settled_at) WHERE settled_at IS NOT NULL;
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
  CREATE TABLE usage_days (
    account_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    item TEXT NOT NULL,
    month INTEGER NOT NULL,
    charges INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, item)
  ) STRICT, WITHOUT ROWID;
`;

/**
 * Sessions, and the answers that a repeat of an observation gets: a head and rows, from which each transport makes its form. A
 * session's observations have its id in their key; '' means "no session_id". One index of sessions serves both retentions.
 */
const ROBOT = `
  CREATE TABLE robot_sessions (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    model TEXT NOT NULL,
    session_id TEXT NOT NULL,
    last_at INTEGER NOT NULL,
    replies_kept INTEGER NOT NULL,
    PRIMARY KEY (account_id, model, session_id)
  ) STRICT;
  CREATE INDEX robot_sessions_quiet ON robot_sessions (replies_kept, last_at);
  CREATE TABLE observations (
    account_id TEXT NOT NULL,
    model TEXT NOT NULL,
    session_id TEXT NOT NULL,
    observation_id TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    generation_id TEXT NOT NULL,
    step INTEGER,
    head TEXT,
    rows BLOB,
    at INTEGER NOT NULL,
    PRIMARY KEY (account_id, model, session_id, observation_id)
  ) STRICT;
  CREATE INDEX observations_alone ON observations (at) WHERE session_id = '';
  CREATE INDEX observations_alone_kept ON observations (at) WHERE session_id = '' AND head IS NOT NULL;
`;

/**
 * An answer that is kept for minutes is not compressed (0.12 ms of 0.9). One that fits into a page stays out of the table beside the
 * table (0.03 ms).
 */
const ROBOT_POSTGRES = `
  ALTER TABLE observations ALTER COLUMN head SET STORAGE EXTERNAL;
  ALTER TABLE observations ALTER COLUMN rows SET STORAGE EXTERNAL;
  ALTER TABLE observations SET (toast_tuple_target = 8160);
`;

/** Responses of language models, and the processes that run them. */
const LLM = `
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
`;

/** Runs of robots: totals of accounts and runs, files, uploads with their parts, blobs to come or to go, and what was transferred. */
const RUNS = `
  CREATE TABLE run_accounts (
    account_id TEXT PRIMARY KEY,
    stored INTEGER NOT NULL CHECK (stored >= 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0),
    completed INTEGER NOT NULL CHECK (completed >= 0)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE robot_runs (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    robot TEXT NOT NULL,
    run TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    stored INTEGER NOT NULL CHECK (stored >= 0),
    files INTEGER NOT NULL CHECK (files >= 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0),
    coming INTEGER NOT NULL CHECK (coming >= 0),
    uploads INTEGER NOT NULL CHECK (uploads >= 0),
    completed_at INTEGER,
    manifest TEXT
  ) STRICT;
  CREATE UNIQUE INDEX robot_runs_name ON robot_runs (account_id, robot, run);
  CREATE INDEX robot_runs_completed ON robot_runs (account_id, completed_at, id) WHERE completed_at IS NOT NULL;
  CREATE INDEX robot_runs_of ON robot_runs (account_id, robot, completed_at, id) WHERE completed_at IS NOT NULL;
  CREATE TABLE run_files (
    run_id TEXT NOT NULL,
    path TEXT NOT NULL,
    blob_id TEXT NOT NULL,
    size INTEGER NOT NULL CHECK (size >= 0),
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    stored_at INTEGER NOT NULL,
    replaced INTEGER NOT NULL,
    PRIMARY KEY (run_id, path)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX run_files_blob ON run_files (blob_id);
  CREATE TABLE run_uploads (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    path TEXT NOT NULL,
    blob_id TEXT NOT NULL,
    token TEXT,
    size INTEGER NOT NULL CHECK (size > 0),
    part_size INTEGER NOT NULL CHECK (part_size > 0),
    sha256 BLOB,
    state TEXT NOT NULL,
    owner TEXT,
    attempt TEXT,
    joining_at INTEGER,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX run_uploads_path ON run_uploads (run_id, path) WHERE state <> 'done';
  CREATE INDEX run_uploads_run ON run_uploads (run_id, path);
  CREATE UNIQUE INDEX run_uploads_blob ON run_uploads (blob_id);
  CREATE INDEX run_uploads_joining ON run_uploads (joining_at) WHERE state = 'joining';
  CREATE INDEX run_uploads_expires ON run_uploads (expires_at);
  CREATE TABLE run_parts (
    upload_id TEXT NOT NULL,
    part INTEGER NOT NULL,
    tag TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    replaced TEXT,
    PRIMARY KEY (upload_id, part)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE run_blobs (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    token TEXT,
    account_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    owner TEXT,
    cause TEXT,
    said TEXT,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX run_blobs_state ON run_blobs (state, at);
  CREATE INDEX run_blobs_cause ON run_blobs (cause) WHERE cause IS NOT NULL;
  CREATE INDEX run_blobs_run ON run_blobs (run_id);
  CREATE TABLE run_store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
  ) STRICT;
  CREATE TABLE run_months (
    account_id TEXT NOT NULL,
    month INTEGER NOT NULL,
    uploaded INTEGER NOT NULL,
    downloaded INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    PRIMARY KEY (account_id, month)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE run_meters (
    owner TEXT PRIMARY KEY,
    flush INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
`;

/**
 * Jobs that go back to the queue: the seen time of their submission, the milliseconds of it from which on they may be taken, and how
 * often they went back.
 */
const JOB_REPEATS = `
  ALTER TABLE responses ADD COLUMN submitted_at INTEGER;
  ALTER TABLE responses ADD COLUMN due_ms INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE responses ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
  UPDATE responses SET submitted_at = created_at WHERE job = 1 AND ended_at IS NULL;
`;

/** Responses that their keys return and no read does. */
const HIDDEN_RESPONSES = `
  ALTER TABLE responses ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX responses_hidden ON responses (ended_at) WHERE hidden = 1 AND ended_at IS NOT NULL;
`;

/** What a person recognises an identity by on the page. */
const IDENTITY_EMAILS = `
  ALTER TABLE identities ADD COLUMN email TEXT NOT NULL DEFAULT '';
  CREATE INDEX identities_account ON identities (account_id);
`;

/** Every record and manifest of a run counts for its account. */
const RUN_RECORDS = `
  ALTER TABLE run_accounts ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
  UPDATE run_accounts SET
    runs = (SELECT count(*) FROM robot_runs WHERE robot_runs.account_id = run_accounts.account_id),
    stored = stored + (SELECT coalesce(CAST(sum((1 + files + uploads) * 1024 + coalesce(octet_length(manifest), 0)) AS BIGINT), 0)
      FROM robot_runs WHERE robot_runs.account_id = run_accounts.account_id),
    reserved = reserved + (SELECT coalesce(CAST(sum((coming - uploads) * 1024) AS BIGINT), 0)
      FROM robot_runs WHERE robot_runs.account_id = run_accounts.account_id);
`;

/** The generation of the store that the marker beside the bytes names, and the marker before it. */
const RUN_GENERATION = `
  ALTER TABLE run_store ADD COLUMN generation TEXT NOT NULL DEFAULT '';
  ALTER TABLE run_store ADD COLUMN marked TEXT NOT NULL DEFAULT '';
`;

/** Oldest first; the version of a database is the number of them that it has. */
export const MIGRATIONS: readonly Migration[] = [
  [STORE, ACCOUNTS, PEOPLE, CHARGES, ROBOT, { postgres: ROBOT_POSTGRES }, LLM, RUNS],
  [JOB_REPEATS, HIDDEN_RESPONSES, IDENTITY_EMAILS],
  [RUN_RECORDS, RUN_GENERATION],
];
