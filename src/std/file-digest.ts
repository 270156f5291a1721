/**
 * SHA-256 of files, computed beside the event loop. A file that has not changed is read once in a process, and once for all starts of
 * `serve` if a file of digests is kept.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { systemClock } from "./clock.ts";
import { readText, writePrivate } from "./file.ts";

/** A larger file is hashed in pieces on the event loop: graphs of a full-size model may not fit into memory. */
const WHOLE_BYTES_MAX = 64 << 20;
/** Files in memory at a time. */
const WHOLE_FILES_MAX = 4;
/** The kernel's clock, by which files are dated, ticks every few milliseconds: of two changes within a tick only one is seen. */
const SETTLED_MS = 1_000;
/** Entries of a file of digests, and its format. */
const KEPT_MAX = 4_096;
const FORMAT = 1;

interface DigestEntry {
  /**
   * A change of a file changes its ctime, which no program can set. So a file of the same device, inode, size and
   * times has the same content.
   */
  readonly identity: string;
  readonly digest: Promise<string>;
  /** The file had not been changed for so long that a later change has another time. */
  readonly isSettled: boolean;
}

const known = new Map<string, DigestEntry>();
/** Something is known that is not kept yet. */
let isNew = false;
let inMemory = 0;
const waiting: (() => void)[] = [];

/** Lower-case hexadecimal; throws when the file cannot be read. */
export async function fileDigest(path: string): Promise<string> {
  // Before it is read: a change meanwhile is one from this.
  const { identity, size, ctimeMs } = await identityOf(path);
  const before = known.get(path);
  if (before?.identity === identity) return await before.digest;
  const digest = size <= WHOLE_BYTES_MAX ? whole(path) : inPieces(path);
  const isSettled = systemClock.unixMs() - ctimeMs > SETTLED_MS;
  known.set(path, { identity, digest, isSettled });
  digest.then(
    () => {
      isNew ||= isSettled;
    },
    () => known.delete(path),
  );
  return await digest;
}

/** Notes the digest of a file that this process has just written at `writtenAt`, where no other writes, and that will be at `path`. */
export async function noteDigest(path: string, writtenAt: string, digest: string): Promise<void> {
  const { identity } = await identityOf(writtenAt);
  known.set(path, { identity, digest: Promise.resolve(digest), isSettled: true });
  isNew = true;
}

/** Takes what an earlier process kept; where it cannot be read, files are hashed. */
export async function recallDigests(from: string): Promise<void> {
  const text = await readText(from).catch(() => undefined);
  for (const [path, identity, digest] of keptIn(text ?? "")) {
    if (!known.has(path)) known.set(path, { identity, digest: Promise.resolve(digest), isSettled: true });
  }
}

/** Keeps what is known for the next process, if there is anything new; without it that one hashes the files again. */
export async function keepDigests(to: string): Promise<void> {
  if (!isNew) return;
  isNew = false;
  const settled = [...known].filter(([, { isSettled }]) => isSettled).slice(-KEPT_MAX);
  const files = await Promise.all(settled.map(async ([path, { identity, digest }]) => [path, identity, await digest]));
  await writePrivate(to, `${JSON.stringify({ format: FORMAT, files })}\n`).catch(() => {});
}

function keptIn(text: string): [path: string, identity: string, digest: string][] {
  try {
    const kept = JSON.parse(text);
    const isEntry = (entry: unknown) => Array.isArray(entry) && entry.length === 3 && entry.every(isText);
    return kept.format === FORMAT && Array.isArray(kept.files) ? kept.files.filter(isEntry) : [];
  } catch {
    return [];
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

async function identityOf(path: string) {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return { identity: [dev, ino, size, mtimeNs, ctimeNs].join(" "), size, ctimeMs: Number(ctimeNs / 1_000_000n) };
}

async function whole(path: string): Promise<string> {
  if (inMemory >= WHOLE_FILES_MAX) await new Promise<void>((turn) => waiting.push(turn));
  else inMemory += 1;
  try {
    return await bytesDigest(await readFile(path));
  } finally {
    const next = waiting.shift();
    // The next file in the queue takes the memory of this one.
    if (next) next();
    else inMemory -= 1;
  }
}

/** The same of a few bytes, at once. */
export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
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
