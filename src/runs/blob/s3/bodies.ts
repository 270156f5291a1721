/** The bodies of requests to an S3 store: staged files that are sent, and objects that are read. */
import { type FileHandle, open } from "node:fs/promises";
import type { Staged } from "../backend.ts";
import type { Watch } from "./attempt.ts";
import { S3Failure } from "./failure.ts";

/** Each block is new memory. Larger blocks make the process grow without a gain in time. */
const SENT_BYTES = 64 * 1024;

/** The bytes of a staged file, which are read as the store takes them. */
export class FileBody implements AsyncDisposable {
  readonly stream: ReadableStream<Uint8Array>;
  private file: Promise<FileHandle> | undefined;
  private ended = false;

  /** `watch` counts each block that the store takes as a sign of life. */
  constructor(path: string, watch: Watch) {
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      watch.alive();
      if (this.ended) return;
      this.file ??= open(path, "r");
      const block = new Uint8Array(SENT_BYTES);
      const { bytesRead } = await (await this.file).read(block, 0, block.length, null);
      if (bytesRead === 0) controller.close();
      else controller.enqueue(block.subarray(0, bytesRead));
    };
    this.stream = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  }

  /** fetch does not always cancel a body that it stops reading. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.ended = true;
    const file = await this.file?.catch(() => undefined);
    await file?.close();
  }
}

/** The body with its length and the checksum that the store compares. An empty stream would have no length. */
export function checked({ size, sha256 }: Staged, { stream }: FileBody) {
  return {
    Body: size === 0 ? new Uint8Array() : stream,
    ContentLength: size,
    ChecksumSHA256: Buffer.from(sha256).toString("base64"),
  };
}

/** Adds the digest of the body to the signature, which the client library does not do for a stream. */
export function signedDigest({ sha256 }: Staged) {
  return <Input extends { request?: unknown }, Output>(next: (args: Input) => Output) =>
    (args: Input): Output => {
      const { headers } = args.request as { headers: Record<string, string> };
      headers["x-amz-content-sha256"] = Buffer.from(sha256).toString("hex");
      return next(args);
    };
}

const PIECE_BYTES = 256 * 1024;
/** Reading gives up after this many connections in a row without a byte. */
const BREAKS_MAX = 3;

/** The part of a reader on whose type Bun and Node agree. */
interface ByteReader {
  read(): Promise<{ readonly value?: Uint8Array | undefined }>;
}

/** The body of an answer, and the watch that ends it. */
export interface Source {
  readonly body: ReadableStream<Uint8Array>;
  readonly watch: Watch;
}

/**
 * The bytes of one object, pulled as they are needed: the store waits while nothing is read. A connection that breaks, or that the
 * store closes, is opened again where it stopped.
 */
export class ObjectBytes implements AsyncIterableIterator<Uint8Array> {
  private reader: ByteReader | undefined;
  private watch: Watch | undefined;
  private rest: Uint8Array = new Uint8Array();
  private breaks = 0;
  private ended = false;

  /** `source` has the bytes from `at` on; `open` requests those from another offset on. */
  constructor(
    source: Source,
    private at: number,
    private readonly to: number,
    private readonly open: (at: number) => Promise<Source>,
  ) {
    this.take(source);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.rest.length === 0) this.rest = await this.pull();
    if (this.rest.length === 0) return await this.return();
    const value = ownMemory(this.rest) ? this.rest : this.rest.slice(0, PIECE_BYTES);
    this.rest = this.rest.subarray(value.length);
    return { done: false, value };
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.ended = true;
    this.rest = new Uint8Array();
    this.watch?.stop();
    return { done: true, value: undefined };
  }

  /** The next bytes; none at the end. */
  private async pull(): Promise<Uint8Array> {
    while (!this.ended && this.at < this.to) {
      const piece = await this.received();
      if (piece !== undefined) {
        this.breaks = 0;
        this.at += piece.length;
        if (this.at > this.to) throw new S3Failure("GetObject", new Error("more bytes than were asked for"));
        if (piece.length > 0) return piece;
      } else if (!this.ended) {
        this.breaks += 1;
        if (this.breaks > BREAKS_MAX)
          throw new S3Failure("GetObject", new Error("the body breaks off again and again"));
        this.take(await this.open(this.at));
      }
    }
    return new Uint8Array();
  }

  /** Undefined if the connection broke, or if its body is shorter than requested. */
  private async received(): Promise<Uint8Array | undefined> {
    this.watch?.alive();
    try {
      return (await this.reader?.read())?.value;
    } catch (error) {
      const silentMs = this.watch?.silentMs;
      if (silentMs !== undefined && !this.ended) throw new S3Failure("GetObject", error, silentMs);
      return undefined;
    } finally {
      this.watch?.pause();
    }
  }

  private take({ body, watch }: Source): void {
    this.watch?.stop();
    this.watch = watch;
    this.reader = body.getReader();
    if (this.ended) watch.stop();
  }
}

/** Whether the buffer can move to another thread together with the piece. */
function ownMemory(piece: Uint8Array): boolean {
  return piece.length <= PIECE_BYTES && piece.length === piece.buffer.byteLength;
}
