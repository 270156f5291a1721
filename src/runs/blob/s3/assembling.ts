/** Blobs from parts: the store's own multipart uploads. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import type { Assembly, Lost, PartTag, Staged } from "../backend.ts";
import { S3Failure } from "./failure.ts";
import { checked, FileBody, signedDigest } from "./file-body.ts";
import type { Store } from "./store.ts";

/** The store may say nothing while it puts two gigabytes together; that it is there was seen a moment before. */
const JOIN_SILENT_MS = 5 * 60_000;

interface StoredPart {
  readonly tag: string;
  readonly size: number;
  readonly checksum: string | undefined;
}

/** By number. */
type StoredParts = ReadonlyMap<number, StoredPart>;

export async function begun(store: Store, id: string): Promise<string> {
  const command = new CreateMultipartUploadCommand({ ...store.at(id), ChecksumAlgorithm: "SHA256" });
  const { UploadId } = await store.attempt("CreateMultipartUpload", (abort) => store.client.send(command, abort));
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

/** Numbers of the parts that are not the tagged ones; none: the object is there, or there is no such assembly (any more). */
export async function joined(store: Store, from: Assembly, parts: readonly PartTag[]): Promise<number[]> {
  for (let refusal: S3Failure | undefined; ; ) {
    // Before each Complete: it may be silent for long, and a store that is dead shows here.
    const stored = await storedParts(store, from);
    if (stored === undefined) return [];
    const changed = differing(parts, stored);
    if (changed.length > 0) return changed;
    // The parts are as they were asked for, and the store refuses them.
    if (refusal) throw refusal;
    refusal = await complete(store, from, parts, stored);
    if (refusal === undefined) return [];
  }
}

export async function abandoned(store: Store, { id, token }: Assembly): Promise<void> {
  // What `begin` said may be lost with the process that asked.
  const tokens = token === "" ? await tokensOf(store, id) : [token];
  for (const UploadId of tokens) {
    const command = new AbortMultipartUploadCommand({ ...store.at(id), UploadId });
    await store.attempt("AbortMultipartUpload", (abort) => store.client.send(command, abort)).catch(noUpload);
  }
}

async function tokensOf(store: Store, id: string): Promise<string[]> {
  const { Bucket, Key } = store.at(id);
  const command = new ListMultipartUploadsCommand({ Bucket, Prefix: Key });
  const { Uploads = [] } = await store.attempt("ListMultipartUploads", (abort) => store.client.send(command, abort));
  return Uploads.flatMap((upload) => (upload.Key === Key && upload.UploadId ? [upload.UploadId] : []));
}

async function storedParts(store: Store, { id, token }: Assembly): Promise<StoredParts | undefined> {
  const found = new Map<number, StoredPart>();
  let marker: string | undefined;
  do {
    const command = new ListPartsCommand({ ...store.at(id), UploadId: token, PartNumberMarker: marker });
    const page = await store.attempt("ListParts", (abort) => store.client.send(command, abort)).catch(noUpload);
    if (page === undefined) return undefined;
    for (const { PartNumber = 0, ETag = "", Size = 0, ChecksumSHA256 } of page.Parts ?? [])
      found.set(PartNumber, { tag: ETag, size: Size, checksum: ChecksumSHA256 });
    marker = page.IsTruncated ? page.NextPartNumberMarker : undefined;
  } while (marker !== undefined);
  return found;
}

/** The refusal of what the store has, if it was that; other failures reject. */
async function complete(store: Store, { id, token }: Assembly, parts: readonly PartTag[], stored: StoredParts) {
  // Where the store keeps checksums of the parts it wants to hear them again.
  const Parts = [...parts]
    .sort((a, b) => a.part - b.part)
    .map(({ part, tag }) => ({ PartNumber: part, ETag: tag, ChecksumSHA256: stored.get(part)?.checksum }));
  const command = new CompleteMultipartUploadCommand({ ...store.at(id), UploadId: token, MultipartUpload: { Parts } });
  try {
    await store.attempt("CompleteMultipartUpload", (abort) => store.client.send(command, abort), JOIN_SILENT_MS);
    return undefined;
  } catch (error) {
    if (error instanceof S3Failure && ["InvalidPart", "NoSuchUpload"].includes(error.kind)) return error;
    throw error;
  }
}

/** Parts that the store has with other bytes, or not at all. */
function differing(parts: readonly PartTag[], stored: StoredParts): number[] {
  const same = ({ part, tag, size }: PartTag) => stored.get(part)?.tag === tag && stored.get(part)?.size === size;
  return parts.filter((one) => !same(one)).map(({ part }) => part);
}

/** Undefined where the failure says that there is no such assembly; other failures are thrown. */
function noUpload(error: unknown): undefined {
  if (!(error instanceof S3Failure && error.kind === "NoSuchUpload")) throw error;
}

function said(value: string | undefined, operation: string, what: string): string {
  if (value === undefined || value === "") throw new Error(`S3 ${operation}: the answer has no ${what}`);
  return value;
}
