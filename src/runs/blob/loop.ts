/**
 * The loop of the thread of the blobs: it writes what arrives to the disk, computes digests, and speaks to the backend. So neither
 * a digest of a gigabyte nor a client of an object store takes time from the event loop that answers robots.
 */
import { join } from "node:path";
import type { Backend } from "./backend.ts";
import { folderBackend } from "./folder.ts";
import type { BlobOptions, Fault, FromBlobs, ToBlobs } from "./messages.ts";
import { Room } from "./room.ts";
import { type Arriving, Staging } from "./staging.ts";

type Answer = (message: FromBlobs, transfer?: ArrayBuffer[]) => void;

export class BlobLoop {
  private backend: Backend | undefined;
  private staging: Staging | undefined;
  private readonly arriving = new Map<number, Arriving>();
  private readonly reading = new Map<number, AsyncIterator<Uint8Array>>();

  /** `nonce`: a text that is never said twice, of letters and digits. */
  constructor(
    private readonly answer: Answer,
    private readonly nonce: () => string,
  ) {}

  receive(message: ToBlobs): void {
    if (message.kind === "piece") this.piece(message);
    else if (message.kind === "stop") this.stop(message.stream);
    else this.ask(message);
  }

  private ask(message: Exclude<ToBlobs, { kind: "piece" | "stop" }>): void {
    const { id } = message;
    this.handle(message).then(
      (value) =>
        this.answer({ kind: "answer", id, value }, value instanceof Uint8Array ? [value.buffer as ArrayBuffer] : []),
      (error: unknown) => this.answer({ kind: "failed", id, ...whatFailed(error) }),
    );
  }

  private async handle(message: Exclude<ToBlobs, { kind: "piece" | "stop" }>): Promise<unknown> {
    switch (message.kind) {
      case "open":
        return await this.open(message.options, message.staging);
      case "call": {
        // The names and what is given are those of the caller's types (blobs.ts).
        type Called = ((...given: readonly unknown[]) => Promise<unknown>) | undefined;
        return await (this.opened()[message.name] as Called)?.(...message.given);
      }
      case "receive":
        this.arriving.set(message.stream, await this.stagingFolder().receive(message.size));
        return undefined;
      case "received": {
        const arriving = this.arriving.get(message.stream);
        this.arriving.delete(message.stream);
        if (!arriving) throw new Error("nothing is received under this number");
        return await arriving.end().catch(async (error) => {
          await arriving.drop();
          throw error;
        });
      }
      case "discard":
        return await this.discard(message.stream, message.staged);
      case "read": {
        const { stream, blob, from, to } = message;
        const found = await this.opened().read(blob, from, to);
        if (!found) return "absent";
        this.reading.set(stream, found[Symbol.asyncIterator]());
        return "open";
      }
      case "pull":
        return await this.pull(message.stream);
    }
  }

  private async open(options: BlobOptions, staging: string): Promise<void> {
    const folder = options.kind === "folder";
    const room = new Room(folder ? [staging, join(options.path, "blobs")] : [staging]);
    this.staging = new Staging(staging, room);
    await this.staging.empty();
    const backend = await backendOf(options, this.nonce, staging);
    this.backend = folder ? joinsInto(room, backend) : backend;
    await this.backend.check();
  }

  private opened(): Backend {
    if (!this.backend) throw new Error("the blobs are not open");
    return this.backend;
  }

  private stagingFolder(): Staging {
    if (!this.staging) throw new Error("the blobs are not open");
    return this.staging;
  }

  private piece({ stream, block, length }: Extract<ToBlobs, { kind: "piece" }>): void {
    const arriving = this.arriving.get(stream);
    const taken = () => {
      const failed = arriving?.error === undefined ? {} : { failed: whatFailed(arriving.error) };
      this.answer({ kind: "taken", stream, block, ...failed }, [block]);
    };
    if (arriving) arriving.add(new Uint8Array(block, 0, length)).then(taken, taken);
    else taken();
  }

  private async discard(stream: number | undefined, staged: { readonly path: string } | undefined): Promise<void> {
    if (staged) await this.stagingFolder().remove(staged);
    if (stream === undefined) return;
    const arriving = this.arriving.get(stream);
    this.arriving.delete(stream);
    await arriving?.drop();
  }

  private async pull(stream: number): Promise<Uint8Array | undefined> {
    const next = await this.reading.get(stream)?.next();
    // What is sent must have its buffer for itself.
    if (next && !next.done) return next.value.length === next.value.buffer.byteLength ? next.value : next.value.slice();
    this.reading.delete(stream);
    return undefined;
  }

  private stop(stream: number): void {
    const iterator = this.reading.get(stream);
    this.reading.delete(stream);
    // Whoever leaves does not wait for the source to be closed.
    iterator?.return?.()?.catch(() => {});
  }
}

/** What is put together in a folder stands there twice until its parts are removed. */
function joinsInto(room: Room, backend: Backend): Backend {
  return {
    ...backend,
    join: async (from, parts) => {
      const claim = await room.claim(parts.reduce((sum, { size }) => sum + size, 0));
      return await backend.join(from, parts).finally(() => claim.end());
    },
  };
}

/** `staging`: from where what has come is moved; undefined: nothing comes. */
export async function backendOf(options: BlobOptions, nonce: () => string, staging?: string): Promise<Backend> {
  if (options.kind === "folder") return folderBackend(options.path, nonce, staging);
  const { s3Backend } = await import("./s3.ts");
  return s3Backend(options);
}

function whatFailed(error: unknown): Fault {
  const { code, message } = error as { code?: string; message?: string };
  return { reason: message ?? String(error), full: code === "ENOSPC" || code === "EDQUOT" };
}
