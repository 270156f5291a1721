/** The tables of the runs of robots. */
import type { Migration } from "../../store/migration.ts";

export const MIGRATIONS: readonly Migration[] = [
  [
    `
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
  `,
  ],
];
