/**
 * Bytes of one object, pulled as they are needed: the store waits while nobody asks. A connection that breaks, or that the store
 * closes while nobody reads, is opened again where it stopped.
 */

import type { Watch } from "./attempt.ts";
import { S3Failure } from "./failure.ts";

const PIECE_BYTES = 256 * 1024;
/** Connections in a row that give nothing. */
const BREAKS_MAX = 3;

/** As Bun and Node both type the reader of a stream. */
interface ByteReader {
  read(): Promise<{ readonly value?: Uint8Array | undefined }>;
}

/** The answer to a request of bytes, and what ends it. */
export interface Source {
  readonly body: ReadableStream<Uint8Array>;
  readonly watch: Watch;
}

export class ObjectBytes implements AsyncIterableIterator<Uint8Array> {
  private reader: ByteReader | undefined;
  private watch: Watch | undefined;
  private rest: Uint8Array = new Uint8Array();
  private breaks = 0;
  private ended = false;

  /** `source` has the bytes from `at`; `open` asks for those from another place. */
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

  /** What comes next; nothing at the end. */
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

  /** Undefined: the connection broke, or its body is shorter than was asked for. */
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

/** Whether the receiver, who takes the whole buffer with it to another thread, can have it. */
function ownMemory(piece: Uint8Array): boolean {
  return piece.length <= PIECE_BYTES && piece.length === piece.buffer.byteLength;
}
