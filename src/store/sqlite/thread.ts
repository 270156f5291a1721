/** The main thread's side of the writer thread and of the checkpoint thread. */
import { StoreDown, type WriteCall } from "../store.ts";
import type { FromCheckpointer, ToCheckpointer } from "./checkpointer.ts";
import type { WriteReply } from "./group.ts";
import type { FromWriter, ToWriter } from "./writer.ts";

export class Writer {
  /** The reason why the store is down until the next start. */
  downReason: string | undefined;
  private readonly pending = new Map<number, (reply: WriteReply) => void>();
  private readonly opened = Promise.withResolvers<string | undefined>();
  private readonly closed = Promise.withResolvers<void>();
  private checkpointer: Worker | undefined;
  private readonly copied = Promise.withResolvers<void>();
  private nextId = 1;
  private path = "";

  constructor(private readonly worker: Worker) {
    worker.onmessage = ({ data }: MessageEvent<FromWriter>) => this.receive(data);
    worker.onerror = (event) => this.fail(`the writer thread failed: ${event.message}`);
  }

  open(path: string): Promise<string | undefined> {
    this.path = path;
    this.post({ kind: "open", path });
    return this.opened.promise;
  }

  /** Makes `checkpointer` copy the log into the database whenever it has grown. */
  copyLog(path: string, checkpointer: Worker): void {
    checkpointer.onmessage = ({ data }: MessageEvent<FromCheckpointer>) => {
      if (data.kind === "closed") this.copied.resolve();
      else this.fail(this.syncFailed(data.message));
    };
    checkpointer.onerror = (event) => this.fail(`the checkpoint thread failed: ${event.message}`);
    this.checkpointer = checkpointer;
    this.postCheckpointer({ kind: "open", path });
  }

  /** `key`: the operation, whose argument and outcome cross a thread and lose their types there. */
  async write<A, R>(key: string, argument: A): Promise<R | StoreDown> {
    const reply = await this.ask((id) => ({ kind: "write", request: { id, key, argument } }));
    return reply.down === undefined ? (reply.result as R) : new StoreDown(reply.down, reply.unknown);
  }

  async warmUp(calls: readonly WriteCall[]): Promise<void> {
    await this.ask((id) => ({ kind: "warm", id, calls }));
  }

  async ping(): Promise<StoreDown | undefined> {
    const reply = await this.ask((id) => ({ kind: "ping", id }));
    return reply.down === undefined ? undefined : new StoreDown(reply.down);
  }

  /** Commits what waits, closes the database and ends the threads; after a failure nothing more is committed. */
  async close(): Promise<void> {
    if (this.downReason === undefined) {
      this.downReason = "the store is closed";
      // The writer's connection must be closed last: SQLite then copies the whole log and removes it.
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
    else if (message.kind === "failed") this.fail(this.syncFailed(message.message));
    else for (const reply of message.replies) this.take(reply);
  }

  private take(reply: WriteReply): void {
    // SQLite's messages name no file.
    const named = reply.down === undefined ? reply : { ...reply, down: `${this.path}: ${reply.down}` };
    this.pending.get(reply.id)?.(named);
    this.pending.delete(reply.id);
  }

  private fail(reason: string): void {
    this.downReason = reason;
    // Another copy would not verify checksums, as a start does, and the disk may lack a part of the log.
    this.checkpointer?.terminate();
    this.checkpointer = undefined;
    this.copied.resolve();
    this.opened.resolve(reason);
    this.closed.resolve();
    // Pending writes may have been committed before the failure.
    for (const [id, resolve] of this.pending) resolve({ id, down: reason, unknown: true });
    this.pending.clear();
  }

  private syncFailed(message: string): string {
    const advice = "nothing is read or written any more; put the disk in order, then restart tendon";
    return `a sync of the log of ${this.path} failed (${message}), so the last writes may be lost: ${advice}`;
  }
}
