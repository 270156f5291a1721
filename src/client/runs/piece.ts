/** A span of a local file: its bytes as the body of a request, and its SHA-256. Neither holds more of the file than a block. */
import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";

export interface Piece {
  readonly file: string;
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

const BLOCK_BYTES = 256 * 1024;

/** The file is not what it was when it was measured. Thrown out of a body, since a body cannot return it. */
export class PieceBroken extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

/** The bytes, block by block; each block is a new one, because the connection may still hold the last. */
export async function* blocksOf({ file, start, end }: Piece): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, "r");
    for (let at = start; at < end; ) {
      const block = new Uint8Array(Math.min(BLOCK_BYTES, end - at));
      const { bytesRead } = await handle.read(block, 0, block.length, at);
      if (bytesRead === 0) throw broken(file, "became shorter while it was read; push when nothing writes to it");
      yield bytesRead === block.length ? block : block.subarray(0, bytesRead);
      at += bytesRead;
    }
  } catch (error) {
    throw error instanceof PieceBroken ? error : broken(file, `cannot be read: ${(error as Error).message}`);
  } finally {
    await handle?.close();
  }
}

function broken(file: string, how: string): PieceBroken {
  return new PieceBroken(new Problem(`'${printable(file)}' ${how}`));
}

/** SHA-256 in hexadecimal. */
export async function digestOf(piece: Piece, signal?: AbortSignal): Promise<string | Problem> {
  const hash = createHash("sha256");
  try {
    for await (const block of blocksOf(piece)) {
      if (signal?.aborted) return new Problem("left");
      hash.update(block);
    }
  } catch (error) {
    if (error instanceof PieceBroken) return error.problem;
    throw error;
  }
  return hash.digest("hex");
}

/** The form that `Content-Digest` carries (RFC 9530). */
export function contentDigest(sha256: string): string {
  return `sha-256=:${Buffer.from(sha256, "hex").toString("base64")}:`;
}
