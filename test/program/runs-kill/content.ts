/** Contents of files for tests: slices of one pool of seeded random bytes, so that a model keeps numbers instead of bytes. */
import { createCipheriv, createHash } from "node:crypto";

const POOL_BYTES = 48 * 1024 * 1024;

/** The same bytes for the same key, as if random. */
export function seededBytes(key: string, length: number): Uint8Array {
  const secret = createHash("sha256").update(key).digest();
  // Encrypted zeros.
  return createCipheriv("aes-256-ctr", secret, new Uint8Array(16)).update(new Uint8Array(length));
}

let pool: Uint8Array | undefined;

/** What a file has at some time. */
export interface Version {
  readonly offset: number;
  readonly size: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export function versionAt(offset: number, size: number): Version {
  return { offset, size, sha256: sha256Of(bytesOf({ offset, size })) };
}

/** `from`, `to`: of a part. */
export function bytesOf({ offset, size }: Pick<Version, "offset" | "size">, from = 0, to = size): Uint8Array {
  pool ??= seededBytes("pool", POOL_BYTES);
  return pool.subarray(offset + from, offset + Math.min(to, size));
}

/** Offsets below this have enough bytes behind them. */
export function offsetsFor(size: number): number {
  return POOL_BYTES - size;
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
