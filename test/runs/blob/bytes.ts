/** Blobs of tests: random bytes, put and read by way of a backend. */
import { expect } from "bun:test";
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Assembly, Backend, PartTag, Staged } from "../../../src/runs/blob/backend.ts";
import type { TemporaryFolder } from "../../store/temporary.ts";

let count = 0;

/** A text that is never said twice. */
export function nonce(): string {
  count += 1;
  return `n${count}`;
}

/** Of a blob. */
export const blobId = () => `blob_${nonce()}`;

export function random(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
}

export const sha256 = (...bytes: readonly Uint8Array[]) =>
  new Uint8Array(bytes.reduce((hash, one) => hash.update(one), createHash("sha256")).digest());

/** In the folder, as if it had been received. */
export async function staged({ path: dir }: TemporaryFolder, bytes: Uint8Array): Promise<Staged> {
  const path = join(dir, `staged-${nonce()}`);
  await Bun.write(path, bytes);
  return { path, size: bytes.length, sha256: sha256(bytes) };
}

export async function stored(dir: TemporaryFolder, backend: Backend, bytes: Uint8Array): Promise<string> {
  const name = blobId();
  await backend.put(await staged(dir, bytes), name);
  return name;
}

export async function begun(backend: Backend): Promise<Assembly> {
  const name = blobId();
  return { id: name, token: await backend.begin(name) };
}

export async function sent(
  dir: TemporaryFolder,
  backend: Backend,
  to: Assembly,
  part: number,
  bytes: Uint8Array,
): Promise<PartTag> {
  const tag = await backend.putPart(await staged(dir, bytes), to, part);
  if (typeof tag !== "string") throw new Error("the assembly is lost");
  return { part, tag, size: bytes.length };
}

/** Undefined: there is no such blob. */
export async function bytesOf(
  backend: Backend,
  name: string,
  from: number,
  to: number,
): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  const found = await backend.read(name, from, to);
  if (!found) return undefined;
  for await (const piece of found) {
    expect(piece.length).toBeWithin(1, 256 * 1024 + 1);
    pieces.push(piece);
  }
  return new Uint8Array(Buffer.concat(pieces));
}

/** The text of the error with which it rejects. */
export async function reason(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (failed: unknown) => failed,
  );
  expect(error).toBeInstanceOf(Error);
  return (error as Error).message;
}
