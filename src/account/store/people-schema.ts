/** What the domain of people has added to the base's tables (released migrations are never edited). */
import type { Migration } from "../../store/migration.ts";

export const MIGRATIONS: readonly Migration[] = [
  [
    `
  CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
  ) STRICT;
  `,
  ],
  // How a person signed in, and when the person last proved to be the one.
  [
    `
  ALTER TABLE sign_ins ADD COLUMN method TEXT NOT NULL DEFAULT 'password';
  ALTER TABLE sign_ins ADD COLUMN proved_at INTEGER NOT NULL DEFAULT 0;
  UPDATE sign_ins SET proved_at = created_at;
  `,
  ],
];
