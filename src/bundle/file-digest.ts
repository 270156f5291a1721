/** SHA-256 of files, computed beside the event loop, and once in a process for a file that nobody has changed since. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";

/** A larger file is hashed in pieces on the event loop: graphs of a full-size model may not fit into memory. */
const WHOLE_BYTES_MAX = 64 << 20;
/** Files in memory at a time. */
const WHOLE_FILES_MAX = 4;

interface Known {
  readonly identity: string;
  readonly digest: Promise<string>;
}

const known = new Map<string, Known>();
let inMemory = 0;
const waiting: (() => void)[] = [];

/**
 * Lower-case hexadecimal; throws when the file cannot be read. Whoever changes a file changes its time of change (ctime), which no
 * program can set, so that the digest of an unchanged file stands.
 */
export async function fileDigest(path: string): Promise<string> {
  // Before it is read: a change meanwhile is one from this.
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  const identity = [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  const before = known.get(path);
  if (before?.identity === identity) return await before.digest;
  const digest = size <= WHOLE_BYTES_MAX ? whole(path) : inPieces(path);
  known.set(path, { identity, digest });
  digest.catch(() => known.delete(path));
  return await digest;
}

async function whole(path: string): Promise<string> {
  if (inMemory >= WHOLE_FILES_MAX) await new Promise<void>((turn) => waiting.push(turn));
  else inMemory += 1;
  try {
    return await bytesDigest(await readFile(path));
  } finally {
    const next = waiting.shift();
    // Whoever waits takes the place of this one.
    if (next) next();
    else inMemory -= 1;
  }
}

/** The same of bytes in memory; they must not change meanwhile. */
export async function bytesDigest(bytes: Uint8Array | Buffer): Promise<string> {
  return Buffer.from(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)).toString("hex");
}

async function inPieces(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(piece as Uint8Array);
  return hash.digest("hex");
}
