/**
 * The embedded store: SQLite in the data folder. All writes go through one writer thread with group commit; reads use a
 * read-only connection on the calling thread (some microseconds each).
 */
import type { Database } from "bun:sqlite";
import { join } from "node:path";
import { EXIT, Problem } from "../error.ts";
import { openReader } from "./connection.ts";
import { DATABASE_FILE, type FolderLock, lockFolder, prepareFolder } from "./folder.ts";
import type { WriteReply } from "./group.ts";
import { readsOn } from "./operations.ts";
import { type Reads, type Store, StoreDown, type Writes } from "./store.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

/**
 * The writer's entry point. In the compiled executable the modules are one file at the virtual root and the writer is
 * `store/writer.js` below it, provided that the compile script lists `src/store/writer.ts` beside `src/main.ts`.
 */
const WRITER_URL = new URL(import.meta.url.includes("$bunfs") ? "./store/writer.js" : "./writer.ts", import.meta.url);

/** Prepares and locks the folder, migrates the database and opens it. */
export async function openSqliteStore(dataDir: string): Promise<Store | Problem> {
  const unusable = prepareFolder(dataDir);
  if (unusable) return unusable;
  const lock = lockFolder(dataDir);
  if (lock instanceof Problem) return lock;
  const path = join(dataDir, DATABASE_FILE);
  const writer = new Writer(new Worker(WRITER_URL));
  const problem = await writer.open(path);
  if (problem !== undefined) {
    await writer.close();
    lock.release();
    return new Problem(`the database ${path} cannot be opened: ${problem}`, EXIT.failed);
  }
  return new SqliteStore(writer, openReader(path), lock);
}

class SqliteStore implements Store {
  private readonly reads: Reads;
  private open = true;

  constructor(
    private readonly writer: Writer,
    private readonly reader: Database,
    private readonly lock: FolderLock,
  ) {
    this.reads = readsOn(reader);
  }

  accountAdd: Store["accountAdd"] = (account) => this.writer.write("accountAdd", account);
  keyAdd: Store["keyAdd"] = (key) => this.writer.write("keyAdd", key);
  keyRevoke: Store["keyRevoke"] = (revocation) => this.writer.write("keyRevoke", revocation);
  accountByEmail: Store["accountByEmail"] = (email) => this.read(() => this.reads.accountByEmail(email));
  keyByPublicId: Store["keyByPublicId"] = (publicId) => this.read(() => this.reads.keyByPublicId(publicId));
  chunkKeep: Store["chunkKeep"] = (chunk) => this.writer.write("chunkKeep", chunk);
  chunksForget: Store["chunksForget"] = (retention) => this.writer.write("chunksForget", retention);
  sessionLastAt: Store["sessionLastAt"] = (session) => this.read(() => this.reads.sessionLastAt(session));
  observation: Store["observation"] = (key) => this.read(() => this.reads.observation(key));

  async ping(): Promise<StoreDown | undefined> {
    const read = await this.accountByEmail("");
    return read instanceof StoreDown ? read : this.writer.ping();
  }

  async close(): Promise<void> {
    if (!this.open) return;
    this.open = false;
    this.reader.close();
    await this.writer.close();
    this.lock.release();
  }

  private async read<T>(run: () => T): Promise<T | StoreDown> {
    if (!this.open) return new StoreDown("the store is closed");
    try {
      return run();
    } catch (error) {
      return new StoreDown((error as Error).message);
    }
  }
}

/** The main thread's end of the writer thread. */
class Writer {
  private readonly pending = new Map<number, (reply: WriteReply) => void>();
  private readonly opened = Promise.withResolvers<string | undefined>();
  private readonly closed = Promise.withResolvers<void>();
  private nextId = 1;
  /** Why nothing can be written any more. */
  private downReason: string | undefined;

  constructor(private readonly worker: Worker) {
    worker.onmessage = ({ data }: MessageEvent<FromWriter>) => this.receive(data);
    worker.onerror = (event) => this.fail(`the writer thread failed: ${event.message}`);
  }

  open(path: string): Promise<string | undefined> {
    this.post({ kind: "open", path });
    return this.opened.promise;
  }

  async write<K extends keyof Writes>(
    name: K,
    argument: Parameters<Writes[K]>[0],
  ): Promise<ReturnType<Writes[K]> | StoreDown> {
    const reply = await this.ask((id) => ({ kind: "write", request: { id, name, argument } }));
    if (reply.down !== undefined) return new StoreDown(reply.down);
    // The writer ran `writes[name]`, so the result has its type.
    return reply.result as ReturnType<Writes[K]>;
  }

  async ping(): Promise<StoreDown | undefined> {
    const reply = await this.ask((id) => ({ kind: "ping", id }));
    return reply.down === undefined ? undefined : new StoreDown(reply.down);
  }

  /** Commits what waits, closes the database and ends the thread. */
  async close(): Promise<void> {
    if (this.downReason === undefined) {
      this.downReason = "the store is closed";
      this.post({ kind: "close" });
      await this.closed.promise;
    }
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

  private receive(message: FromWriter): void {
    if (message.kind === "opened") this.opened.resolve(message.problem);
    else if (message.kind === "closed") this.closed.resolve();
    else for (const reply of message.replies) this.take(reply);
  }

  private take(reply: WriteReply): void {
    this.pending.get(reply.id)?.(reply);
    this.pending.delete(reply.id);
  }

  private fail(reason: string): void {
    this.downReason = reason;
    this.opened.resolve(reason);
    this.closed.resolve();
    for (const [id, resolve] of this.pending) resolve({ id, down: reason });
    this.pending.clear();
  }
}
