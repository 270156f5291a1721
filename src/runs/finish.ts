/** A multipart upload becomes its file: the parts are joined, the whole is read back, and the record of the file is written. */
import { LIMITS } from "../limits.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { BlobsDown } from "./blob/blobs.ts";
import { invalid, mismatch, overQuota, RUNS, unavailable, uploadNotFound } from "./errors.ts";
import type { RunDeps } from "./gate.ts";
import type { PutFile } from "./put.ts";
import type { StoredPart, StoredUpload, UploadKey, UploadWithParts } from "./store/records.ts";
import { assemblyLost, assemblyOf, findUpload, joining, partCount } from "./uploads.ts";

/** A part with the digest that the client expects. */
export interface ListedPart {
  readonly part: number;
  readonly sha256: Uint8Array;
}

type Finished = Omit<PutFile, "replaced">;

/** A repeat after the end has the same result. It goes on when the client leaves. */
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
    const at = seenSeconds(clock);
    const begun = await store.joinBegin({ accountId, uploadId, owner, attempt, accountBytesMax, at });
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

/** Drops the parts that differ from the client's list; they must be sent again. */
async function wrongParts(
  { store, blobs, ownership }: RunDeps,
  { upload, parts }: UploadWithParts,
  listed: readonly ListedPart[],
): Promise<Failure | undefined> {
  const known = new Map(parts.map((stored) => [stored.part, stored]));
  const unknown = listed.find(({ part }) => part > partCount(upload));
  if (unknown) return invalid(`parts names part ${unknown.part}, which the upload does not have`, "parts");
  const wrong = listed.flatMap(({ part, sha256 }) => {
    const stored = known.get(part);
    return stored && Buffer.compare(stored.sha256, sha256) !== 0 ? [{ stored, sha256 }] : [];
  });
  const [first] = wrong;
  if (!first) return undefined;
  const { accountId, id: uploadId } = upload;
  const lost = wrong.map(({ stored }) => stored.part);
  const dropped = await store.partsDrop({ accountId, uploadId, lost });
  if (dropped instanceof StoreDown) return unavailable(dropped);
  if (dropped === "dropped" && (await ownership.raise())) {
    for (const { stored } of wrong) await blobs.removePart(assemblyOf(upload), stored.tag);
  }
  return mismatch(`part ${first.stored.part}`, first.sha256, first.stored.sha256);
}

function missing({ upload, parts }: UploadWithParts): Failure {
  const there = new Set(parts.map(({ part }) => part));
  const all = Array.from({ length: partCount(upload) }, (_, index) => index + 1);
  return again(
    all.filter((part) => !there.has(part)),
    "have not come",
  );
}

/** A message names at most this many parts. */
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
  const { accountId, id: uploadId, size, path, token = "" } = upload;
  const of = { accountId, uploadId, attempt };
  const tags = parts.map(({ part, tag, size: bytes }) => ({ part, tag, size: bytes }));
  const joined = await blobs.join(assemblyOf(upload), tags);
  if (joined instanceof BlobsDown) {
    await store.joinEnd({ ...of, lost: [] });
    return unavailable(joined);
  }
  if ("lost" in joined) return (await assemblyLost(deps, upload, token, attempt)) ?? partsLost();
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
  const times = { at, storedAt: unixSeconds(clock), expiresAt: at + LIMITS.runUploadSeconds };
  const stored = await store.joinCommit({ ...of, sha256, ...times });
  if (stored instanceof StoreDown) return unavailable(stored);
  return stored === "gone" ? uploadNotFound() : { path, size, sha256 };
}

function partsLost(): Failure {
  const message = "the storage has lost the parts; send them all again, then finish the upload again";
  return new Failure(RUNS.run_incomplete, message);
}
