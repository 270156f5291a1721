/** The blobs, as the event loop sees them: everything happens on the thread behind it (loop.ts), and failures are values. */
import type { Assembly, Backend, BlobFacts, Changed, Joined, Lost, PartTag, Staged } from "./backend.ts";
import { blobPath } from "./folder.ts";
import type { BlobOptions, Call, FromBlobs, ToBlobs } from "./messages.ts";

/** The blobs did not do what was asked; `reason` is for the log, never for a client. */
export class BlobsDown {
  constructor(
    readonly reason: string,
    /** The disk has no room. */
    readonly full = false,
  ) {}
}

/** A file to be sent as it lies, or pieces that come one after another. */
export type BlobBody =
  | { readonly path: string }
  | { readonly pull: () => Promise<Uint8Array | undefined | BlobsDown>; readonly close: () => void };

/** What of a thread is used. */
interface Thread {
  postMessage(message: ToBlobs, transfer: ArrayBuffer[]): void;
  addEventListener(kind: "message", listener: (event: { data: FromBlobs }) => void): void;
  addEventListener(kind: "error" | "close", listener: (event: { message?: string }) => void): void;
  terminate(): void;
}

const BLOCK_BYTES = 256 * 1024;
/** So much of one upload is in memory: 1 MiB. */
const BLOCKS = 4;

type Answer = Awaited<ReturnType<NonNullable<Backend[Call]>>>;

export class Blobs {
  private next = 0;
  private readonly waiting = new Map<number, (answer: unknown) => void>();
  private readonly receiving = new Map<number, Taken>();
  private down: BlobsDown | undefined;
  private closed = false;
  private tellEnd: ((reason: string) => void) | undefined;
  /** Why the thread has ended by itself: nothing is kept or read until the next start. */
  endedReason: string | undefined;
  private known: string | undefined;

  /** Without a thread nothing is kept. */
  constructor(
    private readonly thread: Thread | undefined,
    private readonly options: BlobOptions = { kind: "folder", path: "" },
  ) {
    if (!thread) {
      this.down = new BlobsDown("this service keeps no blobs");
      return;
    }
    thread.addEventListener("message", ({ data }) => this.hear(data));
    // A bug of ours, or the end.
    const end = ({ message }: { message?: string }) => {
      this.down ??= new BlobsDown(`the thread of the blobs has ended: ${message ?? "closed"}`);
      if (!this.closed) {
        this.endedReason = this.down.reason;
        this.tellEnd?.(this.down.reason);
        this.tellEnd = undefined;
      }
      for (const resolve of this.waiting.values()) resolve(this.down);
      this.waiting.clear();
      // Who waits for a block of theirs to come back would wait for ever.
      for (const taken of this.receiving.values()) taken(new ArrayBuffer(BLOCK_BYTES), this.down);
      this.receiving.clear();
    };
    thread.addEventListener("error", end);
    thread.addEventListener("close", end);
  }

  /** Tells the reason once, when the thread ends by itself. */
  whenEnded(tell: (reason: string) => void): void {
    if (this.endedReason === undefined) this.tellEnd = tell;
    else tell(this.endedReason);
  }

  /** Empties `staging`, the folder for what arrives, and says why blobs cannot be kept. */
  open(staging: string): Promise<BlobsDown | undefined> {
    return this.ask((id) => ({ kind: "open", id, options: this.options, staging }));
  }

  close(): void {
    this.closed = true;
    this.thread?.terminate();
  }

  check(): Promise<BlobsDown | undefined> {
    return this.call("check");
  }

  /** The id of the store of records to which the blobs belong; `id`, where nothing said it. Asked once. */
  async identity(id: string): Promise<string | BlobsDown> {
    if (this.known !== undefined) return this.known;
    const found = await this.call<string>("identity", id);
    if (!(found instanceof BlobsDown)) this.known = found;
    return found;
  }

  /** A body of as many bytes. */
  async receive(size: number): Promise<Receiving | BlobsDown> {
    const stream = this.number();
    const answer = await this.ask<undefined>((id) => ({ kind: "receive", id, stream, size }));
    if (answer instanceof BlobsDown) return answer;
    return new Receiving({
      send: (block, length) => this.thread?.postMessage({ kind: "piece", stream, block, length }, [block]),
      taken: (listener) => this.receiving.set(stream, listener),
      end: async () => {
        this.receiving.delete(stream);
        return await this.ask<Staged>((id) => ({ kind: "received", id, stream }));
      },
      discard: async () => {
        this.receiving.delete(stream);
        await this.ask((id) => ({ kind: "discard", id, stream }));
      },
    });
  }

  /** For bytes that became nothing. */
  async discard(staged: Staged): Promise<void> {
    await this.ask((id) => ({ kind: "discard", id, staged }));
  }

  /** Makes the bytes a blob; whatever happens they are not staged any more. */
  async put(staged: Staged, blob: string): Promise<BlobsDown | undefined> {
    const put = await this.call<undefined>("put", staged, blob);
    await this.discard(staged);
    return put;
  }

  begin(blob: string): Promise<string | BlobsDown> {
    return this.call("begin", blob);
  }

  /** What is lost can be put again, into another assembly: then alone the bytes are still staged. */
  async putPart(staged: Staged, to: Assembly, part: number): Promise<string | Lost | BlobsDown> {
    const tag = await this.call<string | Lost>("putPart", staged, to, part);
    if (typeof tag === "string" || tag instanceof BlobsDown) await this.discard(staged);
    return tag;
  }

  removePart(from: Assembly, tag: string): Promise<BlobsDown | undefined> {
    return this.call("removePart", from, tag);
  }

  join(from: Assembly, parts: readonly PartTag[]): Promise<Joined | Changed | Lost | BlobsDown> {
    return this.call("join", from, parts);
  }

  abandon(from: Assembly): Promise<BlobsDown | undefined> {
    return this.call("abandon", from);
  }

  remove(blobs: readonly string[]): Promise<BlobsDown | undefined> {
    return this.call("remove", blobs);
  }

  list(after: string | undefined): Promise<{ blobs: readonly BlobFacts[]; next: string | undefined } | BlobsDown> {
    return this.call("list", after);
  }

  /** Bytes [from, to) of a blob. */
  async read(blob: string, from: number, to: number): Promise<BlobBody | "absent" | BlobsDown> {
    if (this.options.kind === "folder") {
      const path = blobPath(this.options.path, blob);
      return (await Bun.file(path).exists()) ? { path } : "absent";
    }
    const stream = this.number();
    const opened = await this.ask<"open" | "absent">((id) => ({ kind: "read", id, stream, blob, from, to }));
    if (opened !== "open") return opened;
    return {
      pull: () => this.ask<Uint8Array | undefined>((id) => ({ kind: "pull", id, stream })),
      close: () => this.thread?.postMessage({ kind: "stop", stream }, []),
    };
  }

  private call<A extends Answer>(name: Call, ...given: readonly unknown[]): Promise<A | BlobsDown> {
    return this.ask((id) => ({ kind: "call", id, name, given }));
  }

  private ask<A>(message: (id: number) => ToBlobs): Promise<A | BlobsDown> {
    if (this.down) return Promise.resolve(this.down);
    const id = this.number();
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.waiting.set(id, resolve);
    this.thread?.postMessage(message(id), []);
    // What the thread answers is what the function of the same name of the backend does.
    return promise as Promise<A | BlobsDown>;
  }

  private hear(message: FromBlobs): void {
    if (message.kind === "taken") {
      const { stream, block, failed } = message;
      this.receiving.get(stream)?.(block, failed && new BlobsDown(failed.reason, failed.full));
      return;
    }
    const resolve = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    resolve?.(message.kind === "answer" ? message.value : new BlobsDown(message.reason, message.full));
  }

  private number(): number {
    this.next += 1;
    return this.next;
  }
}

/** A block comes back; `failed`: nothing more is written. */
type Taken = (block: ArrayBuffer, failed: BlobsDown | undefined) => void;

/** The thread's side of one body that arrives. */
interface Line {
  send(block: ArrayBuffer, length: number): void;
  taken(listener: Taken): void;
  end(): Promise<Staged | BlobsDown>;
  discard(): Promise<void>;
}

/** Bytes on their way to the disk, in blocks that go to the thread and come back. */
export class Receiving {
  private readonly free: ArrayBuffer[] = [];
  private made = 0;
  private block: Uint8Array | undefined;
  private length = 0;
  private waiter: ((block: ArrayBuffer) => void) | undefined;
  private failed: BlobsDown | undefined;

  constructor(private readonly line: Line) {
    line.taken((block, failed) => {
      this.failed ??= failed;
      const { waiter } = this;
      this.waiter = undefined;
      if (waiter) waiter(block);
      else this.free.push(block);
    });
  }

  /** Resolves when more may come. One call at a time. */
  async write(bytes: Uint8Array): Promise<BlobsDown | undefined> {
    for (let done = 0; done < bytes.length && !this.failed; ) {
      const block = this.block ?? (await this.takeBlock());
      const count = Math.min(bytes.length - done, BLOCK_BYTES - this.length);
      block.set(bytes.subarray(done, done + count), this.length);
      done += count;
      this.length += count;
      if (this.length === BLOCK_BYTES) this.send();
    }
    return this.failed;
  }

  end(): Promise<Staged | BlobsDown> {
    this.send();
    return this.line.end();
  }

  discard(): Promise<void> {
    this.block = undefined;
    return this.line.discard();
  }

  private send(): void {
    const { block, length } = this;
    this.block = undefined;
    this.length = 0;
    if (block && length > 0) this.line.send(block.buffer as ArrayBuffer, length);
  }

  private async takeBlock(): Promise<Uint8Array> {
    const block = this.free.pop() ?? (this.made < BLOCKS ? this.make() : await this.nextFree());
    this.block = new Uint8Array(block);
    return this.block;
  }

  private make(): ArrayBuffer {
    this.made += 1;
    return new ArrayBuffer(BLOCK_BYTES);
  }

  private nextFree(): Promise<ArrayBuffer> {
    const { promise, resolve } = Promise.withResolvers<ArrayBuffer>();
    this.waiter = resolve;
    return promise;
  }
}
