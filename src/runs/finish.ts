/** A multipart upload becomes its file: the parts are put together, the whole is read back, and its record takes the path. */

import { LIMITS } from "../limits.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { BlobsDown } from "./blob/blobs.ts";
import type { RunDeps } from "./deps.ts";
import { RUNS } from "./errors.ts";
import { mismatch, overQuota, unavailable, uploadNotFound } from "./failures.ts";
import type { PutFile } from "./put.ts";
import type { StoredPart, StoredUpload } from "./store/records.ts";
import { assemblyOf, findUpload, joining, type Upload, type UploadKey } from "./uploads.ts";

/** What the client says that its parts are. */
export interface ListedPart {
  readonly part: number;
  readonly sha256: Uint8Array;
}

type Finished = Omit<PutFile, "replaced">;

/** Repeated after it has ended, it says the same; a client that leaves does not stop it. */
export async function finishUpload(
  deps: RunDeps,
  key: UploadKey,
  listed: readonly ListedPart[],
): Promise<Finished | Failure> {
  const { store, clock, owner, bounds, live } = deps;
  const found = await findUpload(deps, key);
  if (found instanceof Failure) return found;
  if (found.upload.state === "done") return finished(found.upload);
  if (found.upload.state === "joining") return joining();
  const wrong = await wrongParts(deps, found, listed);
  if (wrong) return wrong;
  const { accountId, uploadId } = key;
  const attempt = makeId("join_", clock);
  const { accountBytesMax } = bounds;
  live.add(attempt);
  try {
    const begun = await store.joinBegin({
      accountId,
      uploadId,
      owner,
      attempt,
      accountBytesMax,
      at: seenSeconds(clock),
    });
    if (begun instanceof StoreDown) return unavailable(begun);
    if (begun === "gone") return uploadNotFound();
    if (begun === "joining") return joining();
    if (begun === "quota") return overQuota(bounds);
    if (begun === "missing") return missing(found);
    if ("done" in begun) return finished(begun.done);
    return await joinParts(deps, begun.upload, begun.parts, attempt);
  } finally {
    live.delete(attempt);
  }
}

function finished({ path, size, sha256 }: StoredUpload): Finished {
  return { path, size, sha256: sha256 ?? new Uint8Array() };
}

/** Parts that are not what the client means must come again; none of their bytes are kept. */
async function wrongParts(
  { store, blobs }: RunDeps,
  { upload, parts }: Upload,
  listed: readonly ListedPart[],
): Promise<Failure | undefined> {
  const known = new Map(parts.map(({ part, sha256 }) => [part, sha256]));
  const unknown = listed.find(({ part }) => part > Math.ceil(upload.size / upload.partSize));
  if (unknown) {
    return new Failure(RUNS.invalid_request, `parts names part ${unknown.part}, which the upload does not have`, {
      param: "parts",
    });
  }
  const wrong = listed.filter(({ part, sha256 }) => {
    const stored = known.get(part);
    return stored && Buffer.compare(stored, sha256) !== 0;
  });
  const [first] = wrong;
  if (!first) return undefined;
  const dropped = await store.partsDrop({
    accountId: upload.accountId,
    uploadId: upload.id,
    lost: wrong.map(({ part }) => part),
  });
  if (dropped instanceof StoreDown) return unavailable(dropped);
  for (const { part, tag } of parts) {
    if (dropped === "dropped" && wrong.some((one) => one.part === part))
      await blobs.removePart(assemblyOf(upload), tag);
  }
  return mismatch(`part ${first.part}`, first.sha256, known.get(first.part) ?? new Uint8Array());
}

function missing({ upload, parts }: Upload): Failure {
  const there = new Set(parts.map(({ part }) => part));
  const count = Math.ceil(upload.size / upload.partSize);
  const absent = Array.from({ length: count }, (_, index) => index + 1).filter((part) => !there.has(part));
  return again(absent, "have not come");
}

/** Of many parts the first ones. */
const NAMED_MAX = 20;

function again(parts: readonly number[], why: string): Failure {
  const named = parts.slice(0, NAMED_MAX).join(", ");
  const rest = parts.length > NAMED_MAX ? ` and ${parts.length - NAMED_MAX} more` : "";
  return new Failure(RUNS.run_incomplete, `parts ${named}${rest} ${why}; send them, then finish the upload again`);
}

async function joinParts(
  deps: RunDeps,
  upload: StoredUpload,
  parts: readonly StoredPart[],
  attempt: string,
): Promise<Finished | Failure> {
  const { store, blobs, clock } = deps;
  const { accountId, id: uploadId, size, path } = upload;
  const of = { accountId, uploadId, attempt };
  const tags = parts.map(({ part, tag, size: bytes }) => ({ part, tag, size: bytes }));
  const joined = await blobs.join(assemblyOf(upload), tags);
  if (joined instanceof BlobsDown) {
    await store.joinEnd({ ...of, lost: [] });
    return unavailable(joined);
  }
  if ("lost" in joined) return await partsLost(deps, upload, attempt);
  if ("changed" in joined) {
    await store.joinEnd({ ...of, lost: joined.changed });
    return again(joined.changed, "have changed or are lost");
  }
  const { sha256 } = joined;
  const at = seenSeconds(clock);
  if (joined.size !== size || (upload.sha256 && Buffer.compare(upload.sha256, sha256) !== 0)) {
    const dropped = await store.uploadDrop({ ...of, at });
    if (dropped instanceof StoreDown) return unavailable(dropped);
    return mismatch("the assembled file", upload.sha256 ?? new Uint8Array(), sha256);
  }
  const stored = await store.joinCommit({
    ...of,
    sha256,
    at,
    storedAt: unixSeconds(clock),
    expiresAt: at + LIMITS.runUploadSeconds,
  });
  if (stored instanceof StoreDown) return unavailable(stored);
  return stored === "gone" ? uploadNotFound() : { path, size, sha256 };
}

async function partsLost({ store }: RunDeps, upload: StoredUpload, attempt: string): Promise<Failure> {
  const { accountId, id: uploadId, token = "" } = upload;
  const left = await store.uploadLost({ accountId, uploadId, token, attempt });
  if (left instanceof StoreDown) return unavailable(left);
  if (left === "gone") return uploadNotFound();
  if (left === "joining") return joining();
  return new Failure(
    RUNS.run_incomplete,
    "the storage has lost the parts; send them all again, then finish the upload again",
  );
}
