/** Safe settings of a SQLite connection. */
import { Database } from "bun:sqlite";

/** A writer waits this long for another process, such as `tendon admin`, to finish its transaction. */
const WRITER_WAIT_MS = 5_000;
/** A reader waits only where SQLite recovers a log; it stands on the event loop, so it gives up soon. */
const READER_WAIT_MS = 50;
/** The log is copied into the database when the writer is idle (writer.ts); this bound, in pages, is for a busy one. */
const CHECKPOINT_PAGES = 10_000;

/** The one connection that writes. `synchronous=FULL`: a commit is on the disk before it returns. */
export function openWriter(path: string): Database {
  const db = new Database(path, { create: true, readwrite: true, strict: true });
  db.run(`PRAGMA busy_timeout = ${WRITER_WAIT_MS}`);
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run("PRAGMA foreign_keys = ON");
  db.run(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  return db;
}

export function openReader(path: string): Database {
  const db = new Database(path, { readonly: true, strict: true });
  db.run(`PRAGMA busy_timeout = ${READER_WAIT_MS}`);
  return db;
}
