/** Multipart uploads: started, resumed, part by part, aborted. */
import { LIMITS } from "../limits.ts";
import { monthOf } from "../std/calendar.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds, shownSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { Assembly, Staged } from "./blob/backend.ts";
import { BlobsDown } from "./blob/blobs.ts";
import { invalid, RUNS, refused, unavailable, uploadNotFound } from "./errors.ts";
import type { RunDeps } from "./gate.ts";
import { receive, type Sent } from "./put.ts";
import type { FileKey, StoredUpload, UploadKey, UploadWithParts } from "./store/records.ts";

/** `sha256` is that of the whole file, if the client states it. */
export async function startUpload(
  { store, blobs, clock, bounds }: RunDeps,
  key: FileKey,
  size: number,
  sha256: Uint8Array | undefined,
) {
  const down = await blobs.hasRoom(LIMITS.runRecordBytes);
  if (down) return unavailable(down);
  const at = seenSeconds(clock);
  const partSize = Math.min(size, LIMITS.runPartBytes);
  const uploadId = makeId("up_", clock);
  const expiresAt = at + LIMITS.runUploadSeconds;
  const ids = { runId: makeId("run_", clock), blobId: makeId("blob_", clock), uploadId };
  const begun = await store.uploadBegin({ ...key, size, sha256, ...bounds, ...ids, partSize, at, expiresAt });
  if (begun instanceof StoreDown) return unavailable(begun);
  if (begun !== "begun") return refused(begun, bounds);
  return { uploadId, partSize, parts: Math.ceil(size / partSize), expiresAt: shownSeconds(clock, expiresAt) };
}

const UPLOAD_ID = /^up_[0-9A-Za-z]{1,64}$/;

/** An upload of this file; a finished one is found, too. A text that is no id is not queried: no database takes every text. */
export async function findUpload({ store }: RunDeps, key: UploadKey): Promise<UploadWithParts | Failure> {
  const found = UPLOAD_ID.test(key.uploadId) ? await store.runUpload(key) : undefined;
  if (found instanceof StoreDown) return unavailable(found);
  return found ?? uploadNotFound();
}

export async function uploadsOf({ store }: RunDeps, key: FileKey): Promise<readonly StoredUpload[] | Failure> {
  const found = await store.uploadsAt(key);
  return found instanceof StoreDown ? unavailable(found) : found;
}

/** Stores a part. The result is its SHA-256. */
export async function putPart(deps: RunDeps, key: UploadKey, part: number, sent: Sent): Promise<Uint8Array | Failure> {
  const { store, blobs, clock, ownership } = deps;
  const found = await findUpload(deps, key);
  if (found instanceof Failure) return found;
  const { upload } = found;
  const wrong = partProblem(upload, part, sent.size);
  if (wrong) return wrong;
  const staged = await receive(deps, sent, `part ${part}`);
  if (staged instanceof Failure) return staged;
  const assembled = await addToAssembly(deps, upload, staged, part);
  if (assembled instanceof Failure) return assembled;
  const { assembly, tag } = assembled;
  const { size, sha256 } = staged;
  const of = { accountId: key.accountId, uploadId: upload.id, month: monthOf(unixSeconds(clock)) };
  const stored = await store.partCommit({ ...of, part, tag, size, sha256 });
  if (stored instanceof StoreDown) return unavailable(stored);
  // These bytes would use the disk beside the quota until the upload ends.
  const useless = typeof stored === "string" ? tag : stored.replaced;
  if (useless !== undefined && (await ownership.raise())) await blobs.removePart(assembly, useless);
  if (stored === "joining") return joining();
  return stored === "gone" ? uploadNotFound() : sha256;
}

/** A store may drop an assembly after some days. The part then begins a second one, which the other parts follow. */
const ASSEMBLIES_MAX = 2;

/** Adds a part to the assembly of its upload. The bytes are not staged afterwards, whatever the result is. */
async function addToAssembly(
  deps: RunDeps,
  upload: StoredUpload,
  staged: Staged,
  part: number,
): Promise<{ readonly assembly: Assembly; readonly tag: string } | Failure> {
  const { blobs } = deps;
  let known = upload.token;
  for (let tries = 1; ; tries += 1) {
    const token = known ?? (await openAssembly(deps, upload));
    if (token instanceof Failure) {
      await blobs.discard(staged);
      return token;
    }
    const assembly = { id: upload.blobId, token };
    const tag = await blobs.putPart(staged, assembly, part);
    if (tag instanceof BlobsDown) return unavailable(tag);
    if (typeof tag === "string") return { assembly, tag };
    const failed = await assemblyLost(deps, upload, token);
    if (failed || tries === ASSEMBLIES_MAX) {
      await blobs.discard(staged);
      return failed ?? unavailable(new BlobsDown("the store drops every assembly of this upload"));
    }
    known = undefined;
  }
}

/** Records that the store has lost the assembly; undefined if another one can be begun. `attempt` is the request that joins it. */
export async function assemblyLost(
  { store }: RunDeps,
  { accountId, id: uploadId }: StoredUpload,
  token: string,
  attempt?: string,
): Promise<Failure | undefined> {
  const left = await store.uploadLost({ accountId, uploadId, token, ...(attempt !== undefined && { attempt }) });
  if (left instanceof StoreDown) return unavailable(left);
  if (left === "gone") return uploadNotFound();
  return left === "joining" ? joining() : undefined;
}

export function assemblyOf({ blobId, token = "" }: StoredUpload): Assembly {
  return { id: blobId, token };
}

export function partCount({ size, partSize }: StoredUpload): number {
  return Math.ceil(size / partSize);
}

function partProblem(upload: StoredUpload, part: number, sent: number): Failure | undefined {
  const { size, partSize, state } = upload;
  const parts = partCount(upload);
  if (part > parts)
    return invalid(`part is ${part}, but the upload has ${parts}, of ${partSize} bytes each but the last`, "part");
  const due = part < parts ? partSize : size - (parts - 1) * partSize;
  if (sent !== due) return invalid(`part ${part} has ${sent} bytes, but must have ${due}`);
  if (state === "done") return uploadNotFound();
  return state === "open" ? undefined : joining();
}

export function joining(): Failure {
  return new Failure(
    RUNS.upload_in_progress,
    "the upload is being finished, and its parts do not change any more; repeat the finishing request for the outcome",
    { retryAfterSeconds: 1 },
  );
}

/** Begins the assembly. If two parts begin one at once, the first one counts. */
async function openAssembly({ store, blobs }: RunDeps, upload: StoredUpload): Promise<string | Failure> {
  const { id: uploadId, accountId, blobId } = upload;
  const token = await blobs.begin(blobId);
  if (token instanceof BlobsDown) return unavailable(token);
  const counts = await store.uploadToken({ accountId, uploadId, token });
  if (counts instanceof StoreDown) return unavailable(counts);
  if (counts !== token) await blobs.abandon({ id: blobId, token });
  return counts === "gone" ? uploadNotFound() : counts;
}

/** Ends an unfinished upload; its reservation and its path are free. */
export async function abortUpload(deps: RunDeps, key: UploadKey): Promise<undefined | Failure> {
  const found = await findUpload(deps, key);
  if (found instanceof Failure) return found;
  const { accountId, uploadId } = key;
  const dropped = await deps.store.uploadDrop({ accountId, uploadId, at: seenSeconds(deps.clock) });
  if (dropped instanceof StoreDown) return unavailable(dropped);
  if (dropped === "joining") return joining();
  return dropped === "unknown" ? uploadNotFound() : undefined;
}
