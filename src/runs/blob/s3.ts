/**
 * Blobs in an S3-compatible store: the object PREFIX/ID. Every body is sent with its SHA-256, in the signature and as the checksum
 * that the store compares, so bytes that change on the way are refused; what was joined is read back.
 *
 * The client is the AWS SDK, for its signatures, its errors and the credentials of machines that have a role. It is large and a
 * service without S3 does not load it: this module is imported when it is needed (loop.ts). Bodies, times and attempts are ours.
 */
import { createHash } from "node:crypto";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from "@aws-sdk/client-s3";
import type { S3Options } from "../../config/blobs.ts";
import { present } from "../../std/assert.ts";
import type { Backend, Joined, Lost, Staged } from "./backend.ts";
import { abandoned, begun, joined, partStored } from "./s3/assembling.ts";
import { advice, S3Failure } from "./s3/failure.ts";
import { checked, FileBody, signedDigest } from "./s3/file-body.ts";
import { listed } from "./s3/listing.ts";
import { ObjectBytes, type Source } from "./s3/object-bytes.ts";
import { type S3Bounds, Store } from "./s3/store.ts";

/** Requests side by side where there are many small ones. */
const PARALLEL = 8;

export function s3Backend(options: S3Options, bounds: Partial<S3Bounds> = {}): Backend {
  const store = new Store(options, bounds);
  return {
    check: async () => {
      await tried(store).catch((error) => {
        throw error instanceof S3Failure ? new Error(advice(error, options)) : error;
      });
    },
    identity: (id) => identity(store, id),
    put: (staged, id) => put(store, staged, id),
    begin: (id) => begun(store, id),
    putPart: (staged, to, part) => partStored(store, staged, to, part),
    join: async (from, parts) => {
      const changed = await joined(store, from, parts);
      if (changed.length > 0) return { changed };
      const size = parts.reduce((sum, one) => sum + one.size, 0);
      return await readBack(store, from.id, size);
    },
    abandon: (from) => abandoned(store, from),
    read: (id, from, to) => read(store, id, from, to),
    remove: (ids) => remove(store, ids),
    list: (after) => listed(store, after),
  };
}

/** Does once what will be done again and again, so that a right that is missing shows at the start. */
async function tried(store: Store): Promise<void> {
  const { client, Bucket, folder } = store;
  // No id, so no list has it. Nodes that start together write the same.
  const Key = `${folder}.tendon-check`;
  const text = "tendon writes and reads this at its start\n";
  const write = new PutObjectCommand({ Bucket, Key, Body: text });
  await store.attempt("PutObject", (abort) => client.send(write, abort));
  const readIt = new GetObjectCommand({ Bucket, Key });
  await store.attempt("GetObject", async (abort) => {
    const { Body } = await client.send(readIt, abort);
    if ((await Body?.transformToString()) !== text) throw new Error("what was written is read as something else");
  });
  const objects = new ListObjectsV2Command({ Bucket, Prefix: folder, MaxKeys: 1 });
  await store.attempt("ListObjectsV2", (abort) => client.send(objects, abort));
  const uploads = new ListMultipartUploadsCommand({ Bucket, Prefix: folder, MaxUploads: 1 });
  await store.attempt("ListMultipartUploads", (abort) => client.send(uploads, abort));
  // Of what is not there: another node may be about to read what was written.
  const removal = new DeleteObjectCommand({ Bucket, Key: `${Key}-removed` });
  await store.attempt("DeleteObject", (abort) => client.send(removal, abort)).catch(absent);
}

/** Nodes that start together on one store of records write the same. */
async function identity(store: Store, id: string | undefined): Promise<string | undefined> {
  const { client, Bucket, folder } = store;
  // No id, so no list has it.
  const Key = `${folder}.tendon-store`;
  const readIt = new GetObjectCommand({ Bucket, Key });
  const ask = () =>
    store.attempt("GetObject", async (abort) => (await client.send(readIt, abort)).Body?.transformToString());
  const found = await ask().catch(absent);
  if (found !== undefined || id === undefined) return found;
  const write = new PutObjectCommand({ Bucket, Key, Body: id });
  await store.attempt("PutObject", (abort) => client.send(write, abort));
  // Of two stores of records at once the later one counts, and the other is told so.
  return await ask();
}

async function put(store: Store, staged: Staged, id: string): Promise<void> {
  await store.attempt("PutObject", async (abort, watch) => {
    await using body = new FileBody(staged.path, watch);
    const command = new PutObjectCommand({ ...store.at(id), ...checked(staged, body) });
    command.middlewareStack.add(signedDigest(staged), { step: "build" });
    return await store.client.send(command, abort);
  });
}

async function read(
  store: Store,
  id: string,
  from: number,
  to: number,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  if (from >= to) return (await sizeOf(store, id)) === undefined ? undefined : nothing();
  const open = (at: number) => source(store, id, at, to);
  const first = await open(from).catch(absent);
  return first && new ObjectBytes(first, from, to, open);
}

async function source(store: Store, id: string, from: number, to: number): Promise<Source> {
  const command = new GetObjectCommand({ ...store.at(id), Range: `bytes=${from}-${to - 1}` });
  return await store.attempt("GetObject", async (abort, watch) => {
    const { Body, ContentRange } = await store.client.send(command, abort);
    // A store that ignores ranges would give the bytes of another place.
    if (from > 0 && !ContentRange?.startsWith(`bytes ${from}-`)) throw new Error("the store gave another range");
    return { body: present(Body, "the body of an object").transformToWebStream(), watch };
  });
}

/** The digest of what is stored. The id is never used twice, so what has it and its size is what was joined. */
async function readBack(store: Store, id: string, expected: number): Promise<Joined | Lost> {
  const size = await sizeOf(store, id);
  // A rule of the bucket, such as AbortIncompleteMultipartUpload, ends assemblies without asking us.
  if (size === undefined) return { lost: true };
  if (size !== expected) throw new Error(`S3: the joined object has ${size} bytes, not ${expected}`);
  const hash = createHash("sha256");
  const bytes = await read(store, id, 0, size);
  if (!bytes) throw new Error("S3: the joined object is gone");
  for await (const piece of bytes) hash.update(piece);
  return { size, sha256: new Uint8Array(hash.digest()) };
}

async function sizeOf(store: Store, id: string): Promise<number | undefined> {
  const command = new HeadObjectCommand(store.at(id));
  const head = await store.attempt("HeadObject", (abort) => store.client.send(command, abort)).catch(absent);
  return head && present(head.ContentLength, "the size of an object");
}

async function remove(store: Store, ids: readonly string[]): Promise<void> {
  const rest = ids.values();
  // DeleteObjects takes a thousand at once, but not every store has it, and its answer is a list of refusals.
  const worker = async () => {
    for (const id of rest) {
      const command = new DeleteObjectCommand(store.at(id));
      await store.attempt("DeleteObject", (abort) => store.client.send(command, abort)).catch(absent);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
}

/** Undefined where the failure says that there is no such object; other failures are thrown. */
function absent(error: unknown): undefined {
  if (!(error instanceof S3Failure && error.absent)) throw error;
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
