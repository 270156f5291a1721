/** The set-up of tests of blobs: a folder, an S3 server, and random bytes that are put and read through a backend. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Assembly, Backend, PartTag, Staged } from "../../../src/runs/blob/backend.ts";
import { folderBackend } from "../../../src/runs/blob/folder.ts";
import type { BlobOptions } from "../../../src/runs/blob/loop.ts";
import { s3Backend } from "../../../src/runs/blob/s3.ts";
import { type TemporaryFolder, temporaryFolder } from "../../store/temporary.ts";
import { S3, S3Server } from "./s3-server.ts";

export let dir: TemporaryFolder;
export let server: S3Server;

/** Makes a folder, and an S3 server where there is one, for the tests of a file. */
export function withBlobs(): void {
  beforeAll(async () => {
    dir = await temporaryFolder();
    if (!S3.absent) server = await S3Server.start();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    await dir[Symbol.asyncDispose]();
  });
}

/** An empty store of bytes: its options, and a function that opens it. */
interface Given {
  readonly options: BlobOptions;
  readonly open: () => Backend;
  readonly backend: Backend;
}

type Declare = (title: string, work: (given: Given) => Promise<void>) => void;

/** Declares tests for both stores of bytes; each has an empty one that is open. */
export function onBackends(declare: (test: Declare, kind: "folder" | "s3") => void): void {
  const kinds = [
    { kind: "folder", title: "folder", absent: false },
    { kind: "s3", title: S3.title, absent: S3.absent },
  ] as const;
  for (const { kind, title, absent } of kinds) {
    describe.skipIf(absent)(title, () => {
      declare((name, work) => {
        test(name, async () => {
          const path = join(dir.path, `blobs-${nonce()}`);
          const options: BlobOptions = kind === "folder" ? { kind, path } : server.options();
          const open = () =>
            options.kind === "folder" ? folderBackend(path, nonce) : s3Backend(options, { pageKeys: 3 });
          const backend = open();
          await backend.check();
          await work({ options, open, backend });
        });
      }, kind);
    });
  }
}

let count = 0;

/** A text that is returned once. */
export function nonce(): string {
  count += 1;
  return `n${count}`;
}

export const blobId = () => `blob_${nonce()}`;

export function random(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
}

export const sha256 = (...bytes: readonly Uint8Array[]) =>
  new Uint8Array(bytes.reduce((hash, one) => hash.update(one), createHash("sha256")).digest());

/** Bytes as if they had been received. */
export async function staged(bytes: Uint8Array): Promise<Staged> {
  const path = join(dir.path, `staged-${nonce()}`);
  await Bun.write(path, bytes);
  return { path, size: bytes.length, sha256: sha256(bytes) };
}

export async function stored(backend: Backend, bytes: Uint8Array): Promise<string> {
  const name = blobId();
  await backend.put(await staged(bytes), name);
  return name;
}

export async function begun(backend: Backend): Promise<Assembly> {
  const name = blobId();
  return { id: name, token: await backend.begin(name) };
}

export async function sent(backend: Backend, to: Assembly, part: number, bytes: Uint8Array): Promise<PartTag> {
  const tag = await backend.putPart(await staged(bytes), to, part);
  if (typeof tag !== "string") throw new Error("the assembly is lost");
  return { part, tag, size: bytes.length };
}

/** The bytes of a blob; undefined if there is no such blob. */
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

/** The message of the error with which the promise rejects. */
export async function reason(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (failed: unknown) => failed,
  );
  expect(error).toBeInstanceOf(Error);
  return (error as Error).message;
}
