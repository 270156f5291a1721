/** The blobs as the event loop uses them: all work happens on the thread of the blobs (loop.ts), and failures are values. */
import type { Assembly, Lost, Staged } from "./backend.ts";
import { blobPath } from "./folder.ts";
import type { BlobAnswer, BlobCall, BlobOptions, Remote } from "./loop.ts";

/** The blobs could not do what was asked. `reason` is for the log, never for a client. */
export class BlobsDown {
  constructor(
    readonly reason: string,
    /** Whether the disk has no room. */
    readonly full = false,
  ) {}
}

/** A file that is sent as it lies on the disk, or pieces that are pulled one after another. */
export type BlobBody =
  | { readonly path: string }
  | { readonly pull: () => Promise<Uint8Array | undefined | BlobsDown>; readonly close: () => void };

type Given<Name extends keyof Remote> = Parameters<Remote[Name]>;
type Result<Name extends keyof Remote> = Exclude<Awaited<ReturnType<Remote[Name]>>, void>;
type Answer<Name extends keyof Remote> = Promise<Result<Name> | BlobsDown>;

const BLOCK_BYTES = 256 * 1024;
/** One upload has at most this many blocks in memory. */
const BLOCKS = 4;

export class Blobs {
  private last = 0;
  private readonly waiting = new Map<number, (value: unknown) => void>();
  private down: BlobsDown | undefined;
  private closed = false;
  private tellEnd: ((reason: string) => void) | undefined;
  /** The reason why the thread ended by itself; nothing is kept or read until the next start. */
  endedReason: string | undefined;

  marker = this.remote("marker");
  mark = this.remote("mark");
  begin = this.remote("begin");
  removePart = this.remote("removePart");
  join = this.remote("join");
  abandon = this.remote("abandon");
  remove = this.remote("remove");
  list = this.remote("list");
  /** Removes staged bytes that did not become a blob. */
  discard = this.remote("discard");
  /** Fails if the disk has no room for these bytes, such as those of a record in the database. */
  hasRoom: (bytes: number) => Promise<BlobsDown | undefined> = this.remote("hasRoom");

  /** Without a thread nothing is kept. */
  constructor(
    private readonly thread: Worker | undefined,
    private readonly options: BlobOptions = { kind: "folder", path: "" },
  ) {
    if (!thread) {
      this.down = new BlobsDown("this service keeps no blobs");
      return;
    }
    thread.addEventListener("message", ({ data }: MessageEvent<BlobAnswer>) => {
      const { id, value, fault } = data;
      const resolve = this.waiting.get(id);
      this.waiting.delete(id);
      resolve?.(fault ? new BlobsDown(fault.reason, fault.full) : value);
    });
    const end = (message = "closed") => {
      this.down ??= new BlobsDown(`the thread of the blobs has ended: ${message}`);
      if (!this.closed) {
        this.endedReason = this.down.reason;
        this.tellEnd?.(this.down.reason);
        this.tellEnd = undefined;
      }
      for (const resolve of this.waiting.values()) resolve(this.down);
      this.waiting.clear();
    };
    thread.addEventListener("error", ({ message }) => end(message));
    thread.addEventListener("close", () => end());
  }

  /** Calls `tell` once with the reason when the thread ends by itself. */
  whenEnded(tell: (reason: string) => void): void {
    if (this.endedReason === undefined) this.tellEnd = tell;
    else tell(this.endedReason);
  }

  /** Empties `staging`, the folder for bodies that arrive, and returns why blobs cannot be kept. */
  open(staging: string): Promise<BlobsDown | undefined> {
    return this.call("open", [this.options, staging]);
  }

  close(): void {
    this.closed = true;
    this.thread?.terminate();
  }

  async receive(size: number): Promise<Receiving | BlobsDown> {
    const stream = this.number();
    return (await this.call("receive", [stream, size])) ?? new Receiving(this, stream);
  }

  /** Makes the bytes a blob. They are not staged afterwards, whatever the result is. */
  async put(staged: Staged, blob: string): Promise<BlobsDown | undefined> {
    const down = await this.call("put", [staged, blob]);
    await this.discard(staged);
    return down;
  }

  /** The bytes stay staged only if the assembly is lost: they can be put into another one. */
  async putPart(staged: Staged, to: Assembly, part: number): Promise<string | Lost | BlobsDown> {
    const tag = await this.call("putPart", [staged, to, part]);
    if (typeof tag === "string" || tag instanceof BlobsDown) await this.discard(staged);
    return tag;
  }

  async read(blob: string, from: number, to: number): Promise<BlobBody | "absent" | BlobsDown> {
    if (this.options.kind === "folder") {
      const path = blobPath(this.options.path, blob);
      return (await Bun.file(path).exists()) ? { path } : "absent";
    }
    const stream = this.number();
    const opened = await this.call("read", [stream, blob, from, to]);
    if (opened !== "open") return opened;
    return { pull: () => this.call("pull", [stream]), close: () => this.call("stop", [stream]) };
  }

  /** Calls a function of the thread; buffers in `transfer` move there. */
  call<Name extends keyof Remote>(name: Name, given: Given<Name>, transfer: ArrayBuffer[] = []): Answer<Name> {
    if (this.down) return Promise.resolve(this.down);
    const id = this.number();
    const { promise, resolve } = Promise.withResolvers<unknown>();
    this.waiting.set(id, resolve);
    this.thread?.postMessage({ id, name, given } satisfies BlobCall, transfer);
    // The thread answers with the result of the function of this name.
    return promise as Answer<Name>;
  }

  private remote<Name extends keyof Remote>(name: Name): (...given: Given<Name>) => Answer<Name> {
    return (...given) => this.call(name, given);
  }

  private number(): number {
    this.last += 1;
    return this.last;
  }
}

/** A body on its way to the disk. It moves in blocks, which the thread gives back after it has written them. */
export class Receiving {
  /** One promise for each block that is at the thread. */
  private readonly sent = new Set<Promise<void>>();
  private readonly free: ArrayBuffer[] = [];
  private block: Uint8Array<ArrayBuffer> | undefined;
  private length = 0;
  private failed: BlobsDown | undefined;

  constructor(
    private readonly blobs: Pick<Blobs, "call">,
    private readonly stream: number,
  ) {}

  /** Resolves when more bytes may follow. Only one call may run at a time. */
  async write(bytes: Uint8Array): Promise<BlobsDown | undefined> {
    for (let done = 0; done < bytes.length && !this.failed; ) {
      this.block ??= await this.freeBlock();
      const count = Math.min(bytes.length - done, BLOCK_BYTES - this.length);
      this.block.set(bytes.subarray(done, done + count), this.length);
      done += count;
      this.length += count;
      if (this.length === BLOCK_BYTES) this.send();
    }
    return this.failed;
  }

  async end(): Promise<Staged | BlobsDown> {
    this.send();
    return await this.blobs.call("received", [this.stream]);
  }

  async discard(): Promise<void> {
    this.block = undefined;
    await this.blobs.call("drop", [this.stream]);
  }

  private send(): void {
    const { block, length, stream } = this;
    this.block = undefined;
    this.length = 0;
    if (!block || length === 0) return;
    const written = this.blobs.call("piece", [stream, block.buffer, length], [block.buffer]).then((back) => {
      this.sent.delete(written);
      if (back instanceof BlobsDown) this.failed ??= back;
      else this.free.push(back);
    });
    this.sent.add(written);
  }

  private async freeBlock(): Promise<Uint8Array<ArrayBuffer>> {
    if (this.free.length === 0 && this.sent.size === BLOCKS) await Promise.race(this.sent);
    return new Uint8Array(this.free.pop() ?? new ArrayBuffer(BLOCK_BYTES));
  }
}
