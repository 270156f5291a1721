/** Safe settings of a SQLite connection. */
import { constants, Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { LIMITS } from "../../limits.ts";

/**
 * A separate thread copies the log into the database (checkpointer.ts). The log restarts only when all of it is
 * copied, which rarely happens while commits go on. From this length on, in pages, the writer itself copies the rest.
 */
const CHECKPOINT_PAGES = 10_000;
const LOG_RETRY_MS = 5;

/**
 * A connection that writes. A commit is atomic when it returns, and durable once the writer thread has synced the log
 * (writer.ts). SQLite syncs only the log's header and what it copies into the database. Integers are bigints.
 */
export function openWriter(path: string): Database {
  const db = new Database(path, { create: true, readwrite: true, strict: true, safeIntegers: true });
  db.run(`PRAGMA busy_timeout = ${LIMITS.storeWriterWaitMs}`);
  keepLog(db);
  db.run("PRAGMA synchronous = NORMAL");
  db.run("PRAGMA foreign_keys = ON");
  db.run(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  return db;
}

/**
 * Switches a new database to a log (WAL). SQLite's busy timeout does not cover this change: it reads first, and a write lock that
 * a reader asks for is refused at once. So when several processes create a database together, the waiting is done here.
 */
function keepLog(db: Database): void {
  for (let waitedMs = 0; ; waitedMs += LOG_RETRY_MS) {
    try {
      db.run("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== "SQLITE_BUSY" || waitedMs >= LIMITS.storeWriterWaitMs) throw error;
      Bun.sleepSync(LOG_RETRY_MS);
    }
  }
}

/** A connection that only copies the log into the database. */
export function openCheckpointer(path: string): Database {
  const db = new Database(path, { readwrite: true, strict: true });
  db.run("PRAGMA synchronous = NORMAL");
  // SQLite finds the log with the first read; before that a checkpoint would do nothing.
  db.run("SELECT count(*) FROM sqlite_schema");
  return db;
}

/** The message of an error that says that a sync failed, as opposed to a disk that is full or a lock. */
export function syncError(error: unknown): string | undefined {
  const { code, message } = error as { code?: string; message: string };
  return code === "SQLITE_IOERR_FSYNC" ? message : undefined;
}

export function openReader(path: string): Database {
  const db = new Database(path, { readonly: true, strict: true, safeIntegers: true });
  db.run(`PRAGMA busy_timeout = ${LIMITS.storeReaderWaitMs}`);
  return db;
}

/** A reader that leaves no file behind, for `tendon doctor`; a normal one makes files beside the database. */
export function openLook(path: string): Database {
  if (existsSync(`${path}-wal`)) return openReader(path);
  const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI;
  return new Database(`${pathToFileURL(path)}?immutable=1`, flags);
}
