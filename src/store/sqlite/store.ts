/**
 * The embedded store: SQLite in the data folder. All writes go through one writer thread with group commit, and another thread
 * copies its log into the database. Reads use a read-only connection on the calling thread (some microseconds each).
 */
import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { EXIT, Problem } from "../../std/problem.ts";
import { type Domains, type Run, type StoreOf, slicesOf } from "../domain.ts";
import { drive, first, type Steps } from "../steps.ts";
import { StoreDown } from "../store.ts";
import { openLook, openReader } from "./connection.ts";
import { DATABASE_FILE, lockFolder, prepareFolder } from "./folder.ts";
import { refusal } from "./migrate.ts";
import { closeSqlite, onSqlite } from "./statements.ts";
import { Writer } from "./thread.ts";

/** The thread of checkpointer.ts; service/store.ts says how the executable finds an entry point. */
function checkpointer(): Worker {
  const path = import.meta.url.includes("$bunfs") ? "./store/sqlite/checkpointer.js" : "./checkpointer.ts";
  return new Worker(new URL(path, import.meta.url));
}

/**
 * Prepares the folder, migrates the database and opens it. `serve` locks the folder for itself; a command beside it does not:
 * SQLite keeps their writes apart.
 */
export async function openSqliteStore<D extends Domains>(
  domains: D,
  thread: () => Worker,
  dataDir: string,
  use: "serve" | "beside" = "serve",
): Promise<StoreOf<D> | Problem> {
  const unusable = prepareFolder(dataDir);
  if (unusable) return unusable;
  const release = use === "serve" ? lockFolder(dataDir) : () => {};
  if (release instanceof Problem) return release;
  const path = join(dataDir, DATABASE_FILE);
  const writer = new Writer(thread());
  const problem = await writer.open(path);
  if (problem !== undefined) {
    await writer.close();
    release();
    return new Problem(`the database ${path} cannot be opened: ${problem}`, EXIT.failed);
  }
  // A command ends before the log is long, and closing the last connection copies the log.
  if (use === "serve") writer.copyLog(path, checkpointer());
  return sqliteStore(domains, writer, openReader(path), release, use === "serve");
}

/** A look at the database for `tendon doctor`; changes nothing, also while a service uses the folder. */
export function lookAtDatabase(dataDir: string): "absent" | "whole" | Problem {
  const path = join(dataDir, DATABASE_FILE);
  if (!existsSync(path)) return "absent";
  try {
    const db = openLook(path);
    try {
      const refused = refusal(db);
      if (refused !== undefined) return new Problem(`${path}: ${refused}`);
      const found = db.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
      return found === "ok" ? "whole" : damaged(path, found ?? "it cannot be checked");
    } finally {
      closeSqlite(db);
    }
  } catch (error) {
    return damaged(path, (error as Error).message);
  }
}

function damaged(path: string, reason: string): Problem {
  return new Problem(`${path} cannot be read: ${reason}; put a copy of it back, or name another folder with --data`);
}

function sqliteStore<D extends Domains>(
  domains: D,
  writer: Writer,
  reader: Database,
  release: () => void,
  exclusive: boolean,
): StoreOf<D> {
  let open = true;
  const execute = onSqlite(reader);
  const read = async <T>(steps: () => Steps<T>): Promise<T | StoreDown> => {
    if (!open) return new StoreDown("the store is closed");
    // A reader sees what was committed; after a failure of the writer it is not known whether that is on the disk.
    if (writer.downReason !== undefined) return new StoreDown(writer.downReason);
    try {
      return drive(steps(), execute);
    } catch (error) {
      return new StoreDown((error as Error).message);
    }
  };
  const reads: Run =
    ({ steps, snapshot }) =>
    (argument) =>
      read(() => (snapshot ? inSnapshot(reader, steps(argument)) : steps(argument)));
  const writes: Run =
    ({ key }) =>
    (argument) =>
      writer.write(key, argument);
  return {
    ...slicesOf(domains, reads, writes),
    exclusive,
    warmUp: (calls) => writer.warmUp(calls),
    ping: async () => {
      const answer = await read(() => first("SELECT revision FROM revisions"));
      return answer instanceof StoreDown ? answer : writer.ping();
    },
    close: async () => {
      if (!open) return;
      open = false;
      closeSqlite(reader);
      await writer.close();
      release();
    },
  };
}

/** The steps inside one read transaction. */
function* inSnapshot<T>(reader: Database, steps: Steps<T>): Steps<T> {
  reader.run("BEGIN");
  try {
    return yield* steps;
  } finally {
    reader.run("COMMIT");
  }
}
