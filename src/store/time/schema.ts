/** The table of seen time (released migrations are never edited). */
import type { Migration } from "../migration.ts";

/**
 * The latest moment of what is stored. The service has seen that much pass, and all that is kept is as old as it is by this; a wall
 * clock that happens to be ahead at the upgrade must not make it older.
 */
const LATEST = `SELECT max(at) AS at FROM (
    SELECT max(created_at) AS at FROM accounts
    UNION ALL SELECT max(last_used_at) FROM api_keys
    UNION ALL SELECT max(last_at) FROM robot_sessions
    UNION ALL SELECT max(submitted_at) FROM charges
    UNION ALL SELECT max(created_at) FROM sign_ins) AS moments`;

/** Earlier still if the clock is behind that: it was ahead when some of it was written. A new database has nothing, and begins at its first start. */
const begin = (now: string) =>
  `INSERT INTO seen_time (one, seconds)
   SELECT 1, CASE WHEN at > ${now} THEN ${now} ELSE at END FROM (${LATEST}) AS latest WHERE at IS NOT NULL;`;

export const MIGRATIONS: readonly Migration[] = [
  [
    "CREATE TABLE seen_time (one INTEGER PRIMARY KEY CHECK (one = 1), seconds INTEGER NOT NULL) STRICT;",
    { sqlite: begin("unixepoch()"), postgres: begin("CAST(extract(epoch FROM now()) AS BIGINT)") },
    // Windows of throttles last for a quarter of an hour; no lock-out stays that ends on a day that a clock once showed.
    "DELETE FROM attempts WHERE resets_at > (SELECT seconds FROM seen_time) + 900;",
  ],
];
