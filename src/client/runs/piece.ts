/** A span of a local file: its bytes as the body of a request, and its SHA-256. Neither holds more of the file than a block. */
import { createHash } from "node:crypto";
import { FileShort, pieces } from "../../std/file.ts";
import { printable } from "../../std/printable.ts";
import { Problem } from "../../std/problem.ts";

export interface Piece {
  readonly file: string;
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** The file is not what it was when it was measured. Thrown out of a body, since a body cannot return it. */
export class PieceBroken extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

/** The bytes, block by block; each block is a new one, because the connection may still hold the last. */
export async function* blocksOf({ file, start, end }: Piece): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  try {
    yield* pieces(file, start, end);
  } catch (error) {
    throw error instanceof FileShort
      ? broken(file, "became shorter while it was read; push when nothing writes to it")
      : broken(file, `cannot be read: ${(error as Error).message}`);
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
