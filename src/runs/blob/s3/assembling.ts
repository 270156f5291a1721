/** Blobs that are put together from parts, as multipart uploads of the store. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import type { Assembly, Lost, PartTag, Staged } from "../backend.ts";
import { checked, FileBody, signedDigest } from "./bodies.ts";
import { S3Failure } from "./failure.ts";
import type { Store } from "./store.ts";

/** A store may be silent while it joins two gigabytes. That it is alive was seen just before. */
const JOIN_SILENT_MS = 5 * 60_000;

interface StoredPart {
  readonly tag: string;
  readonly size: number;
  readonly checksum: string | undefined;
}

type StoredParts = ReadonlyMap<number, StoredPart>;

export async function begun(store: Store, id: string): Promise<string> {
  const command = new CreateMultipartUploadCommand({ ...store.at(id), ChecksumAlgorithm: "SHA256" });
  const { UploadId } = await store.send("CreateMultipartUpload", command);
  return said(UploadId, "CreateMultipartUpload", "upload id");
}

export async function partStored(
  store: Store,
  staged: Staged,
  { id, token }: Assembly,
  part: number,
): Promise<string | Lost> {
  const stored = store.attempt("UploadPart", async (abort, watch) => {
    await using body = new FileBody(staged.path, watch);
    const where = { ...store.at(id), UploadId: token, PartNumber: part };
    const command = new UploadPartCommand({ ...where, ...checked(staged, body) });
    command.middlewareStack.add(signedDigest(staged), { step: "build" });
    return await store.client.send(command, abort);
  });
  const answer = await stored.catch(noUpload);
  return answer === undefined ? { lost: true } : said(answer.ETag, "UploadPart", "tag");
}

/** The numbers of parts that are not the tagged ones. There are none if the object exists, or if there is no such assembly. */
export async function joined(store: Store, from: Assembly, parts: readonly PartTag[]): Promise<number[]> {
  for (let refusal: S3Failure | undefined; ; ) {
    // It precedes each Complete, which may be silent for long: a dead store is found here.
    const stored = await storedParts(store, from);
    if (stored === undefined) return [];
    const changed = differing(parts, stored);
    if (changed.length > 0) return changed;
    // The store refuses the right parts.
    if (refusal) throw refusal;
    refusal = await complete(store, from, parts, stored);
    if (refusal === undefined) return [];
  }
}

export async function abandoned(store: Store, { id, token }: Assembly): Promise<void> {
  // The token may be lost with the process that called `begin`.
  const tokens = token === "" ? await tokensOf(store, id) : [token];
  for (const UploadId of tokens) {
    const command = new AbortMultipartUploadCommand({ ...store.at(id), UploadId });
    await store.send("AbortMultipartUpload", command).catch(noUpload);
  }
}

async function tokensOf(store: Store, id: string): Promise<string[]> {
  const { Bucket, Key } = store.at(id);
  const command = new ListMultipartUploadsCommand({ Bucket, Prefix: Key });
  const { Uploads = [] } = await store.send("ListMultipartUploads", command);
  return Uploads.flatMap((upload) => (upload.Key === Key && upload.UploadId ? [upload.UploadId] : []));
}

async function storedParts(store: Store, { id, token }: Assembly): Promise<StoredParts | undefined> {
  const found = new Map<number, StoredPart>();
  let marker: string | undefined;
  do {
    const command = new ListPartsCommand({ ...store.at(id), UploadId: token, PartNumberMarker: marker });
    const page = await store.send("ListParts", command).catch(noUpload);
    if (page === undefined) return undefined;
    for (const { PartNumber = 0, ETag = "", Size = 0, ChecksumSHA256 } of page.Parts ?? [])
      found.set(PartNumber, { tag: ETag, size: Size, checksum: ChecksumSHA256 });
    marker = page.IsTruncated ? page.NextPartNumberMarker : undefined;
  } while (marker !== undefined);
  return found;
}

/** The store's refusal of the parts, or undefined if it joined them; other failures reject. */
async function complete(store: Store, { id, token }: Assembly, parts: readonly PartTag[], stored: StoredParts) {
  // A store that keeps checksums of the parts wants them repeated.
  const Parts = [...parts]
    .sort((a, b) => a.part - b.part)
    .map(({ part, tag }) => ({ PartNumber: part, ETag: tag, ChecksumSHA256: stored.get(part)?.checksum }));
  const command = new CompleteMultipartUploadCommand({ ...store.at(id), UploadId: token, MultipartUpload: { Parts } });
  try {
    await store.send("CompleteMultipartUpload", command, JOIN_SILENT_MS);
    return undefined;
  } catch (error) {
    if (error instanceof S3Failure && ["InvalidPart", "NoSuchUpload"].includes(error.kind)) return error;
    throw error;
  }
}

/** The parts that the store lacks or has with other bytes. */
function differing(parts: readonly PartTag[], stored: StoredParts): number[] {
  const same = ({ part, tag, size }: PartTag) => stored.get(part)?.tag === tag && stored.get(part)?.size === size;
  return parts.filter((one) => !same(one)).map(({ part }) => part);
}

/** Undefined if the failure means that there is no such assembly; other failures are thrown. */
function noUpload(error: unknown): undefined {
  if (!(error instanceof S3Failure && error.kind === "NoSuchUpload")) throw error;
}

function said(value: string | undefined, operation: string, what: string): string {
  if (value === undefined || value === "") throw new Error(`S3 ${operation}: the answer has no ${what}`);
  return value;
}
