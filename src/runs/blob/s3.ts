/**
 * Blobs in an S3-compatible store, as the objects PREFIX/ID. Every body is sent with its SHA-256, in the signature and as the checksum
 * that the store compares, so damaged bytes are refused. A joined object is read back.
 *
 * The client is the AWS SDK, for its signatures, its errors and the credentials of machine roles. It is large, so loop.ts imports this
 * module only when it is needed. Bodies, times and attempts are ours.
 */
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
import { type Assembly, type Backend, type BlobFacts, digestOf, type PartTag, type Staged } from "./backend.ts";
import { advice } from "./s3/advice.ts";
import { abandoned, begun, joined, partStored } from "./s3/assembling.ts";
import { checked, FileBody, ObjectBytes, type Source, signedDigest } from "./s3/bodies.ts";
import { S3Failure } from "./s3/failure.ts";
import { type S3Bounds, Store } from "./s3/store.ts";

/** The number of small requests that run side by side. */
const PARALLEL = 8;

export function s3Backend(options: S3Options, bounds: Partial<S3Bounds> = {}): Backend {
  const store = new Store(options, bounds);
  return {
    check: async () => {
      await tryRequests(store).catch((error) => {
        throw error instanceof S3Failure ? new Error(advice(error, options)) : error;
      });
    },
    marker: async () => (await marker(store)).text,
    mark: (from, to) => mark(store, from, to),
    put: (staged, id) => put(store, staged, id),
    begin: (id) => begun(store, id),
    putPart: (staged, to, part) => partStored(store, staged, to, part),
    // A part replaces the earlier one with its number.
    removePart: async () => {},
    join: (from, parts) => join(store, from, parts),
    abandon: (from) => abandoned(store, from),
    read: (id, from, to) => read(store, id, from, to),
    remove: (ids) => remove(store, ids),
    list: (after) => list(store, after),
  };
}

/** Makes each kind of request once, so that a missing right is found at the start. */
async function tryRequests(store: Store): Promise<void> {
  const { Bucket, folder } = store;
  // The key is no id, so lists leave it out. Nodes that start together write the same text.
  const Key = `${folder}.tendon-check`;
  const text = "tendon writes and reads this at its start\n";
  await store.send("PutObject", new PutObjectCommand({ Bucket, Key, Body: text }));
  if ((await textOf(store, Key)).text !== text) throw new Error("what was written is read as something else");
  await store.send("ListObjectsV2", new ListObjectsV2Command({ Bucket, Prefix: folder, MaxKeys: 1 }));
  const uploads = new ListMultipartUploadsCommand({ Bucket, Prefix: folder, MaxUploads: 1 });
  await store.send("ListMultipartUploads", uploads);
  // The object does not exist: another node may be about to read the one that was written.
  const removal = new DeleteObjectCommand({ Bucket, Key: `${Key}-removed` });
  await store.send("DeleteObject", removal).catch(absent);
}

/** The key is no id, so lists leave it out. */
const MARKER = ".tendon-store";

async function marker(store: Store): Promise<{ readonly text: string; readonly etag?: string | undefined }> {
  return (await textOf(store, store.folder + MARKER).catch(absent)) ?? { text: "" };
}

async function mark(store: Store, from: string, to: string): Promise<boolean> {
  const { text, etag } = await marker(store);
  if (text !== from) return false;
  const object = { ...store.at(MARKER), Body: to };
  const unchanged = from === "" ? { IfNoneMatch: "*" } : { IfMatch: etag };
  await store.send("PutObject", new PutObjectCommand({ ...object, ...unchanged })).catch(async (error: unknown) => {
    const { status } = error as S3Failure;
    // A store without conditions keeps the later of two writers; both read it below.
    if (status === 501) await store.send("PutObject", new PutObjectCommand(object));
    // 404: it was removed meanwhile. 409: another request is being written.
    else if (![404, 409, 412].includes(status ?? 0)) throw error;
  });
  // An earlier attempt, whose answer was lost, may have written it.
  return (await marker(store)).text === to;
}

function textOf(store: Store, Key: string) {
  const command = new GetObjectCommand({ Bucket: store.Bucket, Key });
  return store.attempt("GetObject", async (abort) => {
    const { Body, ETag: etag } = await store.client.send(command, abort);
    return { text: (await Body?.transformToString()) ?? "", etag };
  });
}

async function put(store: Store, staged: Staged, id: string): Promise<void> {
  await store.attempt("PutObject", async (abort, watch) => {
    await using body = new FileBody(staged.path, watch);
    const command = new PutObjectCommand({ ...store.at(id), ...checked(staged, body) });
    command.middlewareStack.add(signedDigest(staged), { step: "build" });
    return await store.client.send(command, abort);
  });
}

async function join(store: Store, from: Assembly, parts: readonly PartTag[]) {
  const changed = await joined(store, from, parts);
  if (changed.length > 0) return { changed };
  const expected = parts.reduce((sum, { size }) => sum + size, 0);
  const size = await sizeOf(store, from.id);
  // A rule of the bucket, such as AbortIncompleteMultipartUpload, ends assemblies by itself.
  if (size === undefined) return { lost: true } as const;
  if (size !== expected) throw new Error(`S3: the joined object has ${size} bytes, not ${expected}`);
  // An id is used once, so an object with this id and size is the joined one.
  const bytes = await read(store, from.id, 0, size);
  if (!bytes) throw new Error("S3: the joined object is gone");
  return { size, sha256: await digestOf(bytes) };
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

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function source(store: Store, id: string, from: number, to: number): Promise<Source> {
  const command = new GetObjectCommand({ ...store.at(id), Range: `bytes=${from}-${to - 1}` });
  return await store.attempt("GetObject", async (abort, watch) => {
    const { Body, ContentRange } = await store.client.send(command, abort);
    // A store that ignores ranges would send other bytes.
    if (from > 0 && !ContentRange?.startsWith(`bytes ${from}-`)) throw new Error("the store gave another range");
    return { body: present(Body, "the body of an object").transformToWebStream(), watch };
  });
}

async function sizeOf(store: Store, id: string): Promise<number | undefined> {
  const head = await store.send("HeadObject", new HeadObjectCommand(store.at(id))).catch(absent);
  return head && present(head.ContentLength, "the size of an object");
}

async function remove(store: Store, ids: readonly string[]): Promise<void> {
  const rest = ids.values();
  // DeleteObjects takes a thousand ids, but some stores lack it, and its answer is a list of refusals.
  const worker = async () => {
    for (const id of rest) await store.send("DeleteObject", new DeleteObjectCommand(store.at(id))).catch(absent);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
}

/** Undefined if the failure means that there is no such object; other failures are thrown. */
function absent(error: unknown): undefined {
  if (!(error instanceof S3Failure && error.absent)) throw error;
}

/** Our ids. A bucket may hold objects of others, which are not ours to list and remove. */
const ID = /^blob_[0-9A-Za-z]+$/;

/** The start of a page: the objects come first, and then the uploads that are not joined. */
type Cursor = { readonly objects: string | undefined } | { readonly uploads: string | undefined };

interface Page {
  readonly blobs: readonly BlobFacts[];
  readonly next: Cursor | undefined;
}

async function list(store: Store, after: string | undefined) {
  const cursor: Cursor = after === undefined ? { objects: undefined } : JSON.parse(after);
  const page = "objects" in cursor ? objects(store, cursor.objects) : uploads(store, cursor.uploads);
  const { blobs, next } = await page;
  return { blobs: blobs.filter(({ id }) => ID.test(id)), next: next && JSON.stringify(next) };
}

async function objects(store: Store, token: string | undefined): Promise<Page> {
  const { Bucket, folder: Prefix, bounds } = store;
  const command = new ListObjectsV2Command({ Bucket, Prefix, MaxKeys: bounds.pageKeys, ContinuationToken: token });
  const { Contents = [], NextContinuationToken } = await store.send("ListObjectsV2", command);
  return {
    blobs: Contents.map(({ Key, Size, LastModified }) => facts(store.idOf(Key), LastModified, Size)),
    next: NextContinuationToken ? { objects: NextContinuationToken } : { uploads: undefined },
  };
}

async function uploads(store: Store, key: string | undefined): Promise<Page> {
  const { Bucket, folder: Prefix, bounds } = store;
  // Without the marker of an upload the list goes on with the next key. Two uploads of one key are one assembly here.
  const command = new ListMultipartUploadsCommand({ Bucket, Prefix, MaxUploads: bounds.pageKeys, KeyMarker: key });
  const { Uploads = [], IsTruncated, NextKeyMarker } = await store.send("ListMultipartUploads", command);
  return {
    blobs: Uploads.map(({ Key, Initiated }) => facts(store.idOf(Key), Initiated)),
    next: IsTruncated && NextKeyMarker ? { uploads: NextKeyMarker } : undefined,
  };
}

/** An entry without a size is an assembly. */
function facts(id: string, at?: Date, size?: number): BlobFacts {
  return { id, size: size ?? 0, at: Math.floor((at?.getTime() ?? 0) / 1000), begun: size === undefined };
}
