/** The bytes of a staged file as the body of one request: read as the store takes them, their digest sent along. */
import { type FileHandle, open } from "node:fs/promises";
import type { Staged } from "../backend.ts";
import type { Watch } from "./attempt.ts";

/** Small, because every block is new memory until the collector comes: larger ones make the process grow for no gain in time. */
const BLOCK_BYTES = 64 * 1024;

export class FileBody implements AsyncDisposable {
  readonly stream: ReadableStream<Uint8Array>;
  private file: Promise<FileHandle> | undefined;
  private ended = false;

  /** `watch` is told whenever the store has taken a block. */
  constructor(path: string, watch: Watch) {
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      watch.alive();
      if (this.ended) return;
      this.file ??= open(path, "r");
      const block = new Uint8Array(BLOCK_BYTES);
      const { bytesRead } = await (await this.file).read(block, 0, block.length, null);
      if (bytesRead === 0) controller.close();
      else controller.enqueue(block.subarray(0, bytesRead));
    };
    this.stream = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  }

  /** Whatever became of the request: fetch does not always say that it left a body. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.ended = true;
    const file = await this.file?.catch(() => undefined);
    await file?.close();
  }
}

/** The staged bytes, and what the store compares them with. An empty stream would have no length. */
export function checked({ size, sha256 }: Staged, { stream }: FileBody) {
  return {
    Body: size === 0 ? new Uint8Array() : stream,
    ContentLength: size,
    ChecksumSHA256: Buffer.from(sha256).toString("base64"),
  };
}

/** Puts the digest of the body into the signature, which the client library does not do with a stream. */
export function signedDigest({ sha256 }: Staged) {
  return <Input extends { request?: unknown }, Output>(next: (args: Input) => Output) =>
    (args: Input): Output => {
      const { headers } = args.request as { headers: Record<string, string> };
      headers["x-amz-content-sha256"] = Buffer.from(sha256).toString("hex");
      return next(args);
    };
}
