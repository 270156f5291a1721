/** What the domain of accounts changed in the schema. */
import type { Migration } from "../../store/migration.ts";

export const MIGRATIONS: readonly Migration[] = [
  // Whether an operator stands for the e-mail. Of the accounts of before, those made by an operator cannot be told from those of an
  // open sign-up once a person has set a password; one that was given credit or a payment method was known to its operator. The
  // others are asked about once: `admin credit` says so.
  [
    `
  ALTER TABLE accounts ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
  UPDATE accounts SET verified = 1 WHERE password IS NULL OR payment_method = 1 OR credits <> 0;
  `,
  ],
];
