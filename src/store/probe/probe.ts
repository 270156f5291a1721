/** The domain of readiness: one row, written to see whether writes become durable. */
import type { DomainOf, Slice } from "../domain.ts";
import type { Migration } from "../migration.ts";
import * as writes from "./writes.ts";

const MIGRATIONS: readonly Migration[] = [
  [
    `
  CREATE TABLE probes (
    id INTEGER PRIMARY KEY,
    writes INTEGER NOT NULL
  ) STRICT;
  `,
  ],
];

export const probe = {
  reads: {},
  writes,
  notDurable: [],
  migrations: MIGRATIONS,
} as const satisfies DomainOf<Record<never, never>, typeof writes>;

export type ProbeStore = Slice<typeof probe>;
