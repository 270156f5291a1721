/**
 * The thread of the blobs: it writes bodies to the disk, computes digests and calls the backend. So neither the digest of a gigabyte
 * nor a client of an object store takes time from the event loop that answers robots.
 */
import { dirname, join } from "node:path";
import type { S3Options } from "../../config/blobs.ts";
import type { Backend, Staged } from "./backend.ts";
import { folderBackend } from "./folder.ts";
import { type Arriving, Room, Staging } from "./staging.ts";

export type BlobOptions = S3Options | { readonly kind: "folder"; readonly path: string };

/** The functions that the event loop calls (blobs.ts). */
export type Remote = Omit<BlobLoop, "handle"> & Omit<Backend, "read">;

/** A call from the event loop. The types of its sender match name and arguments. */
export interface BlobCall {
  readonly id: number;
  readonly name: keyof Remote;
  readonly given: readonly unknown[];
}

export interface BlobAnswer {
  readonly id: number;
  readonly value?: unknown;
  readonly fault?: { readonly reason: string; readonly full: boolean };
}

export class BlobLoop {
  private backend: Backend | undefined;
  private staging: Staging | undefined;
  private readonly arriving = new Map<number, Arriving>();
  private readonly reading = new Map<number, AsyncIterator<Uint8Array>>();

  /** `nonce` returns a text of letters and digits that it never returns again. */
  constructor(
    private readonly answer: (answer: BlobAnswer, transfer: ArrayBuffer[]) => void,
    private readonly nonce: () => string,
  ) {}

  handle({ id, name, given }: BlobCall): void {
    this.run(name, given).then(
      (value) => this.answer({ id, value }, buffersOf(value)),
      (error: unknown) => this.answer({ id, fault: faultOf(error) }, []),
    );
  }

  private async run(name: keyof Remote, given: readonly unknown[]): Promise<unknown> {
    type Functions = Readonly<Record<string, (...given: readonly unknown[]) => Promise<unknown>>>;
    const functions = (name in this ? this : opened(this.backend)) as unknown as Functions;
    return await functions[name]?.(...given);
  }

  /** `staging` is the folder of this process for bodies that arrive. It is emptied. */
  async open(options: BlobOptions, staging: string): Promise<void> {
    const folder = options.kind === "folder";
    // The embedded database lies above the staging folder.
    const room = new Room([dirname(staging), staging, ...(folder ? [join(options.path, "blobs")] : [])]);
    this.staging = new Staging(staging, room);
    await this.staging.empty();
    const backend = await backendOf(options, this.nonce, staging);
    this.backend = folder ? joinsInto(room, backend) : backend;
    await this.backend.check();
  }

  async receive(stream: number, size: number): Promise<void> {
    this.arriving.set(stream, await opened(this.staging).receive(size));
  }

  /** Writes the first `length` bytes of the block, and gives it back. */
  async piece(stream: number, block: ArrayBuffer, length: number): Promise<ArrayBuffer> {
    await this.arriving.get(stream)?.add(new Uint8Array(block, 0, length));
    return block;
  }

  async received(stream: number): Promise<Staged> {
    const arriving = opened(this.arriving.get(stream));
    this.arriving.delete(stream);
    return await arriving.end().catch(async (error) => {
      await arriving.drop();
      throw error;
    });
  }

  /** Rejects if the disk has no room. */
  async hasRoom(bytes: number): Promise<void> {
    (await opened(this.staging).room.claim(bytes)).end();
  }

  /** Ends a body that has not arrived completely, and removes its bytes. */
  async drop(stream: number): Promise<void> {
    const arriving = this.arriving.get(stream);
    this.arriving.delete(stream);
    await arriving?.drop();
  }

  async discard(staged: Staged): Promise<void> {
    await opened(this.staging).remove(staged);
  }

  async read(stream: number, blob: string, from: number, to: number): Promise<"open" | "absent"> {
    const found = await opened(this.backend).read(blob, from, to);
    if (!found) return "absent";
    this.reading.set(stream, found[Symbol.asyncIterator]());
    return "open";
  }

  async pull(stream: number): Promise<Uint8Array | undefined> {
    const next = await this.reading.get(stream)?.next();
    // The whole buffer of a piece moves to the event loop, so no other piece may lie in it.
    if (next && !next.done) return next.value.length === next.value.buffer.byteLength ? next.value : next.value.slice();
    this.reading.delete(stream);
    return undefined;
  }

  async stop(stream: number): Promise<void> {
    const iterator = this.reading.get(stream);
    this.reading.delete(stream);
    await iterator?.return?.();
  }
}

/** A folder holds joined bytes twice until the parts are removed. */
function joinsInto(room: Room, backend: Backend): Backend {
  return {
    ...backend,
    join: async (from, parts) => {
      const claim = await room.claim(parts.reduce((sum, { size }) => sum + size, 0));
      return await backend.join(from, parts).finally(() => claim.end());
    },
  };
}

/** `staging` is the folder that received bodies are moved from; undefined if no bodies arrive. */
export async function backendOf(options: BlobOptions, nonce: () => string, staging?: string): Promise<Backend> {
  if (options.kind === "folder") return folderBackend(options.path, nonce, staging);
  const { s3Backend } = await import("./s3.ts");
  return s3Backend(options);
}

function opened<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the blobs or the body are not open");
  return value;
}

function buffersOf(value: unknown): ArrayBuffer[] {
  if (value instanceof ArrayBuffer) return [value];
  return value instanceof Uint8Array ? [value.buffer as ArrayBuffer] : [];
}

function faultOf(error: unknown): NonNullable<BlobAnswer["fault"]> {
  const { code, message } = error as { code?: string; message?: string };
  return { reason: message ?? String(error), full: code === "ENOSPC" || code === "EDQUOT" };
}
