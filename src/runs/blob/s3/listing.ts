/** All blobs under the prefix a page at a time, and then what was begun and not joined. */
import { ListMultipartUploadsCommand, ListObjectsV2Command } from "@aws-sdk/client-s3";
import type { BlobFacts } from "../backend.ts";
import type { Store } from "./store.ts";

/** Of our ids. A bucket may hold what others put there, which is none of ours to list and remove. */
const ID = /^blob_[0-9A-Za-z]+$/;

/** Where a page begins. */
type Cursor = { readonly objects: string | undefined } | { readonly uploads: string | undefined };

interface Page {
  readonly blobs: readonly BlobFacts[];
  readonly next: Cursor | undefined;
}

export async function listed(store: Store, after: string | undefined) {
  const cursor: Cursor = after === undefined ? { objects: undefined } : JSON.parse(after);
  const page = "objects" in cursor ? objects(store, cursor.objects) : uploads(store, cursor.uploads);
  const { blobs, next } = await page;
  return { blobs: blobs.filter(({ id }) => ID.test(id)), next: next && JSON.stringify(next) };
}

async function objects(store: Store, token: string | undefined): Promise<Page> {
  const command = new ListObjectsV2Command({
    Bucket: store.Bucket,
    Prefix: store.folder,
    MaxKeys: store.bounds.pageKeys,
    ContinuationToken: token,
  });
  const { Contents = [], NextContinuationToken } = await store.attempt("ListObjectsV2", (abort) =>
    store.client.send(command, abort),
  );
  return {
    blobs: Contents.map(({ Key, Size, LastModified }) => facts(store.idOf(Key), LastModified, Size)),
    next: NextContinuationToken ? { objects: NextContinuationToken } : { uploads: undefined },
  };
}

async function uploads(store: Store, key: string | undefined): Promise<Page> {
  const command = new ListMultipartUploadsCommand({
    Bucket: store.Bucket,
    Prefix: store.folder,
    MaxUploads: store.bounds.pageKeys,
    // Alone, without the marker of an upload: it goes on with the next key, and two uploads of one key are one assembly here.
    KeyMarker: key,
  });
  const answer = await store.attempt("ListMultipartUploads", (abort) => store.client.send(command, abort));
  return {
    blobs: (answer.Uploads ?? []).map(({ Key, Initiated }) => facts(store.idOf(Key), Initiated)),
    next: answer.IsTruncated && answer.NextKeyMarker ? { uploads: answer.NextKeyMarker } : undefined,
  };
}

/** Without a size: an assembly. */
function facts(id: string, at?: Date, size?: number): BlobFacts {
  return { id, size: size ?? 0, at: Math.floor((at?.getTime() ?? 0) / 1000), begun: size === undefined };
}
