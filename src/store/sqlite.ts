/**
 * The embedded store: SQLite in the data folder. All writes go through one writer thread with group commit, and another thread
 * copies its log into the database; reads use a read-only connection on the calling thread (some microseconds each).
 */
import type { Database } from "bun:sqlite";
import { join } from "node:path";
import { EXIT, Problem } from "../error/problem.ts";
import type { FromCheckpointer, ToCheckpointer } from "./checkpointer.ts";
import { openReader } from "./connection.ts";
import { closeSqlite, onSqlite } from "./dialect.ts";
import { DATABASE_FILE, type FolderLock, lockFolder, prepareFolder } from "./folder.ts";
import type { WriteReply } from "./group.ts";
import { operationsOf, READS, WRITES } from "./operations.ts";
import { drive, type Steps } from "./steps.ts";
import { type Reads, type Store, StoreDown, type Writes } from "./store.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

/**
 * A thread's entry point. In the compiled executable the modules are one file at the virtual root and the writer is
 * `store/writer.js` below it, provided that the compile script (src/setup/compile.ts) lists it beside `src/main.ts`.
 */
function thread(name: "writer" | "checkpointer"): Worker {
  const path = import.meta.url.includes("$bunfs") ? `./store/${name}.js` : `./${name}.ts`;
  return new Worker(new URL(path, import.meta.url));
}

/**
 * Prepares the folder, migrates the database and opens it. `serve` locks the folder for itself; a command beside it does not:
 * SQLite keeps their writes apart.
 */
export async function openSqliteStore(dataDir: string, use: "serve" | "beside" = "serve"): Promise<Store | Problem> {
  const unusable = prepareFolder(dataDir);
  if (unusable) return unusable;
  const lock = use === "serve" ? lockFolder(dataDir) : { release: () => {} };
  if (lock instanceof Problem) return lock;
  const path = join(dataDir, DATABASE_FILE);
  const writer = new Writer(thread("writer"));
  const problem = await writer.open(path);
  if (problem !== undefined) {
    await writer.close();
    lock.release();
    return new Problem(`the database ${path} cannot be opened: ${problem}`, EXIT.failed);
  }
  // A command is over before the log is long, and who closes the database last copies it.
  if (use === "serve") writer.copyLog(path, thread("checkpointer"));
  return sqliteStore(writer, openReader(path), lock, use === "serve");
}

function sqliteStore(writer: Writer, reader: Database, lock: FolderLock, exclusive: boolean): Store {
  let open = true;
  const execute = onSqlite(reader);
  const read = async <T>(steps: () => Steps<T>): Promise<T | StoreDown> => {
    if (!open) return new StoreDown("the store is closed");
    // A reader sees what was committed; with the writer gone nobody knows whether that is on the disk.
    if (writer.downReason !== undefined) return new StoreDown(writer.downReason);
    try {
      return drive(steps(), execute);
    } catch (error) {
      return new StoreDown((error as Error).message);
    }
  };
  const store = {
    ...operationsOf<Writes>(WRITES, (name) => (argument) => writer.write(name, argument)),
    ...operationsOf<Reads>(READS, (name, steps) => (argument) => {
      // Many statements must see one state of the database.
      return name === "ledgerCheck" ? read(() => snapshot(reader, steps(argument))) : read(() => steps(argument));
    }),
    exclusive,
    ping: async () => {
      const answer = await read(() => READS.keysRevision("all"));
      return answer instanceof StoreDown ? answer : writer.ping();
    },
    close: async () => {
      if (!open) return;
      open = false;
      closeSqlite(reader);
      await writer.close();
      lock.release();
    },
  };
  // The two lists have every operation of the interface, which their types say.
  return store as unknown as Store;
}

/** The steps inside one read transaction. */
function* snapshot<T>(reader: Database, steps: Steps<T>): Steps<T> {
  reader.run("BEGIN");
  try {
    return yield* steps;
  } finally {
    reader.run("COMMIT");
  }
}

/** The main thread's end of the writer thread, and of the one that copies its log. */
class Writer {
  /** Why the store is down for good. */
  downReason: string | undefined;
  private readonly pending = new Map<number, (reply: WriteReply) => void>();
  private readonly opened = Promise.withResolvers<string | undefined>();
  private readonly closed = Promise.withResolvers<void>();
  private checkpointer: Worker | undefined;
  private readonly copied = Promise.withResolvers<void>();
  private nextId = 1;

  constructor(private readonly worker: Worker) {
    worker.onmessage = ({ data }: MessageEvent<FromWriter>) => this.receive(data);
    worker.onerror = (event) => this.fail(`the writer thread failed: ${event.message}`);
  }

  open(path: string): Promise<string | undefined> {
    this.post({ kind: "open", path });
    return this.opened.promise;
  }

  /** Has `checkpointer` copy the log into the database whenever it has grown. */
  copyLog(path: string, checkpointer: Worker): void {
    checkpointer.onmessage = ({ data }: MessageEvent<FromCheckpointer>) => {
      if (data.kind === "closed") this.copied.resolve();
      else this.fail(syncFailed(data.message));
    };
    checkpointer.onerror = (event) => this.fail(`the checkpoint thread failed: ${event.message}`);
    this.checkpointer = checkpointer;
    this.postCheckpointer({ kind: "open", path });
  }

  async write(name: keyof Writes, argument: unknown): Promise<unknown> {
    const reply = await this.ask((id) => ({ kind: "write", request: { id, name, argument } }));
    return reply.down === undefined ? reply.result : new StoreDown(reply.down, reply.unknown);
  }

  async ping(): Promise<StoreDown | undefined> {
    const reply = await this.ask((id) => ({ kind: "ping", id }));
    return reply.down === undefined ? undefined : new StoreDown(reply.down);
  }

  /** Commits what waits, closes the database and ends the threads; after a failure nothing more is committed. */
  async close(): Promise<void> {
    if (this.downReason === undefined) {
      this.downReason = "the store is closed";
      // The writer's connection is the last: SQLite then copies the whole log and removes it.
      if (this.checkpointer) {
        this.postCheckpointer({ kind: "close" });
        await this.copied.promise;
      }
      this.post({ kind: "close" });
      await this.closed.promise;
    }
    this.checkpointer?.terminate();
    this.worker.terminate();
  }

  private ask(message: (id: number) => ToWriter): Promise<WriteReply> {
    const id = this.nextId;
    this.nextId += 1;
    if (this.downReason !== undefined) return Promise.resolve({ id, down: this.downReason });
    const { promise, resolve } = Promise.withResolvers<WriteReply>();
    this.pending.set(id, resolve);
    this.post(message(id));
    return promise;
  }

  private post(message: ToWriter): void {
    this.worker.postMessage(message);
  }

  private postCheckpointer(message: ToCheckpointer): void {
    this.checkpointer?.postMessage(message);
  }

  private receive(message: FromWriter): void {
    if (message.kind === "opened") this.opened.resolve(message.problem);
    else if (message.kind === "closed") this.closed.resolve();
    else if (message.kind === "grown") this.postCheckpointer({ kind: "copy" });
    else if (message.kind === "failed") this.fail(syncFailed(message.message));
    else for (const reply of message.replies) this.take(reply);
  }

  private take(reply: WriteReply): void {
    this.pending.get(reply.id)?.(reply);
    this.pending.delete(reply.id);
  }

  private fail(reason: string): void {
    this.downReason = reason;
    // It would copy what the disk may not have, without looking at checksums as a start does.
    this.checkpointer?.terminate();
    this.checkpointer = undefined;
    this.copied.resolve();
    this.opened.resolve(reason);
    this.closed.resolve();
    // What the thread was doing when it ended may be done.
    for (const [id, resolve] of this.pending) resolve({ id, down: reason, unknown: true });
    this.pending.clear();
  }
}

function syncFailed(message: string): string {
  const advice = "nothing is read or written any more; put the disk in order, then restart tendon";
  return `a sync of the log failed (${message}), so the last writes may be lost: ${advice}`;
}
