/** A file in one request. The row with its reservation comes first, then the bytes, then the file's record (store/runs/records.ts). */

import { monthOf } from "../std/calendar.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { BlobsDown } from "./blob/blobs.ts";
import type { RunDeps } from "./deps.ts";
import { completed, refused, runGone, unavailable } from "./failures.ts";
import { type Pour, receive } from "./receive.ts";
import type { FileKey } from "./store/records.ts";

interface Put extends FileKey {
  readonly size: number;
  readonly sha256: Uint8Array | undefined;
  readonly pour: Pour;
}

export interface PutFile {
  readonly path: string;
  readonly size: number;
  readonly sha256: Uint8Array;
  readonly replaced: boolean;
}

export async function putFile(deps: RunDeps, { pour, sha256, ...file }: Put): Promise<PutFile | Failure> {
  const { store, clock, owner, bounds, live } = deps;
  const blobId = makeId("blob_", clock);
  live.add(blobId);
  try {
    const ids = { runId: makeId("run_", clock), blobId, owner };
    const begun = await store.fileBegin({ ...file, ...bounds, ...ids, at: seenSeconds(clock) });
    if (begun instanceof StoreDown) return unavailable(begun);
    if (begun !== "begun") return refused(begun, bounds);
    const stored = await storeBytes(deps, { pour, sha256, ...file }, blobId);
    if (stored instanceof Failure) await store.fileAbort({ accountId: file.accountId, blobId, at: seenSeconds(clock) });
    return stored;
  } finally {
    live.delete(blobId);
  }
}

async function storeBytes(deps: RunDeps, { accountId, path, size, sha256, pour }: Put, blobId: string) {
  const { store, blobs, clock } = deps;
  const staged = await receive(deps, { pour, size, sha256, what: "the body" });
  if (staged instanceof Failure) return staged;
  const put = await blobs.put(staged, blobId);
  if (put instanceof BlobsDown) return unavailable(put);
  const storedAt = unixSeconds(clock);
  const times = { at: seenSeconds(clock), storedAt, month: monthOf(storedAt) };
  const commit = { accountId, blobId, sha256: staged.sha256, ...times };
  const stored = await store.fileCommit(commit);
  if (stored instanceof StoreDown) return unavailable(stored);
  if (stored === "gone") return runGone();
  if (stored === "run_completed") return completed();
  return { path, size, sha256: staged.sha256, ...stored };
}
