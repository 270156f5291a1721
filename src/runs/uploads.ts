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
import type { RunDeps } from "./deps.ts";
import { RUNS } from "./errors.ts";
import { refused, unavailable, uploadNotFound } from "./failures.ts";
import { type Pour, receive } from "./receive.ts";
import type { FileKey, StoredPart, StoredUpload } from "./store/records.ts";

export interface Upload {
  readonly upload: StoredUpload;
  readonly parts: readonly StoredPart[];
}

export interface UploadKey extends FileKey {
  readonly uploadId: string;
}

interface Start extends FileKey {
  readonly size: number;
  readonly sha256: Uint8Array | undefined;
}

export interface Started {
  readonly uploadId: string;
  readonly partSize: number;
  readonly parts: number;
  readonly expiresAt: number;
}

export async function startUpload({ store, clock, bounds }: RunDeps, start: Start): Promise<Started | Failure> {
  const at = seenSeconds(clock);
  const partSize = Math.min(start.size, LIMITS.runPartBytes);
  const uploadId = makeId("up_", clock);
  const expiresAt = at + LIMITS.runUploadSeconds;
  const ids = { runId: makeId("run_", clock), blobId: makeId("blob_", clock), uploadId };
  const begun = await store.uploadBegin({ ...start, ...bounds, ...ids, partSize, at, expiresAt });
  if (begun instanceof StoreDown) return unavailable(begun);
  if (begun !== "begun") return refused(begun, bounds);
  return { uploadId, partSize, parts: Math.ceil(start.size / partSize), expiresAt: shownSeconds(clock, expiresAt) };
}

const UPLOAD_ID = /^up_[0-9A-Za-z]{1,64}$/;

/** An upload of this file, finished ones too. What cannot be an id is not looked for: no database takes every text. */
export async function findUpload({ store }: Pick<RunDeps, "store">, key: UploadKey): Promise<Upload | Failure> {
  const found = UPLOAD_ID.test(key.uploadId) ? await store.runUpload(key) : undefined;
  if (found instanceof StoreDown) return unavailable(found);
  return found ?? uploadNotFound();
}

export async function uploadsOf({ store }: RunDeps, key: FileKey): Promise<readonly StoredUpload[] | Failure> {
  const found = await store.uploadsAt(key);
  return found instanceof StoreDown ? unavailable(found) : found;
}

interface Part extends UploadKey {
  readonly part: number;
  readonly size: number;
  readonly sha256: Uint8Array | undefined;
  readonly pour: Pour;
}

/** The SHA-256 of the part. */
export async function putPart(
  deps: RunDeps,
  { part, size, sha256, pour, ...key }: Part,
): Promise<Uint8Array | Failure> {
  const { store, blobs, clock } = deps;
  const found = await findUpload(deps, key);
  if (found instanceof Failure) return found;
  const { upload } = found;
  const wrong = partProblem(upload, part, size);
  if (wrong) return wrong;
  const staged = await receive(deps, { pour, size, sha256, what: `part ${part}` });
  if (staged instanceof Failure) return staged;
  const placed = await placePart(deps, upload, staged, part);
  if (placed instanceof Failure) return placed;
  const { assembly, tag } = placed;
  const month = monthOf(unixSeconds(clock));
  const of = { accountId: key.accountId, uploadId: upload.id, month };
  const stored = await store.partCommit({ ...of, part, tag, size, sha256: staged.sha256 });
  if (stored instanceof StoreDown) return unavailable(stored);
  // Nobody will ask for these bytes; they would lie beside the quota until the upload ends.
  const useless = typeof stored === "string" ? tag : stored.replaced;
  if (useless !== undefined) await blobs.removePart(assembly, useless);
  if (stored === "joining") return joining();
  return stored === "gone" ? uploadNotFound() : staged.sha256;
}

interface Placed {
  readonly assembly: Assembly;
  readonly tag: string;
}

/** A store may drop an assembly that is some days old. Then the bytes that have come go into a new one, which the others follow. */
const ASSEMBLIES_MAX = 2;

/** Whatever happens, the bytes are not staged any more. */
async function placePart(deps: RunDeps, upload: StoredUpload, staged: Staged, part: number): Promise<Placed | Failure> {
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
    const failed = await forgetAssembly(deps, upload, token);
    if (failed || tries === ASSEMBLIES_MAX) {
      await blobs.discard(staged);
      return failed ?? unavailable(new BlobsDown("the store drops every assembly of this upload"));
    }
    known = undefined;
  }
}

/** Undefined: another one can be begun. */
async function forgetAssembly(
  { store }: RunDeps,
  { accountId, id: uploadId }: StoredUpload,
  token: string,
): Promise<Failure | undefined> {
  const left = await store.uploadLost({ accountId, uploadId, token });
  if (left instanceof StoreDown) return unavailable(left);
  if (left === "gone") return uploadNotFound();
  return left === "joining" ? joining() : undefined;
}

export function assemblyOf({ blobId, token = "" }: StoredUpload): Assembly {
  return { id: blobId, token };
}

function partProblem({ size, partSize, state }: StoredUpload, part: number, given: number): Failure | undefined {
  const parts = Math.ceil(size / partSize);
  if (part > parts) {
    const message = `part is ${part}, but the upload has ${parts}, of ${partSize} bytes each but the last`;
    return new Failure(RUNS.invalid_request, message, { param: "part" });
  }
  const due = part < parts ? partSize : size - (parts - 1) * partSize;
  if (given !== due) {
    return new Failure(RUNS.invalid_request, `part ${part} has ${given} bytes, but must have ${due}`);
  }
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

/** Begins the assembly with the first part; of two at once the first one counts. */
async function openAssembly({ store, blobs }: RunDeps, upload: StoredUpload): Promise<string | Failure> {
  const { id: uploadId, accountId, blobId } = upload;
  const token = await blobs.begin(blobId);
  if (token instanceof BlobsDown) return unavailable(token);
  const counts = await store.uploadToken({ accountId, uploadId, token });
  if (counts instanceof StoreDown) return unavailable(counts);
  if (counts !== token) await blobs.abandon({ id: blobId, token });
  return counts === "gone" ? uploadNotFound() : counts;
}

/** Gives the room and the path back. */
export async function abortUpload(deps: RunDeps, key: UploadKey): Promise<undefined | Failure> {
  const found = await findUpload(deps, key);
  if (found instanceof Failure) return found;
  const { accountId, uploadId } = key;
  const dropped = await deps.store.uploadDrop({ accountId, uploadId, at: seenSeconds(deps.clock) });
  if (dropped instanceof StoreDown) return unavailable(dropped);
  if (dropped === "joining") return joining();
  return dropped === "unknown" ? uploadNotFound() : undefined;
}
