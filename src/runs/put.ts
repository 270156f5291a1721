/** A file in one request: a row that reserves its bytes, then the bytes, then the file's record (store/records.ts). */
import { monthOf } from "../std/calendar.ts";
import { unixSeconds } from "../std/clock.ts";
import { Failure } from "../std/failure.ts";
import { makeId } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { Staged } from "./blob/backend.ts";
import { BlobsDown } from "./blob/blobs.ts";
import { completed, mismatch, preconditionFailed, refused, runGone, unavailable } from "./errors.ts";
import type { RunDeps } from "./gate.ts";
import type { FileKey, Precondition } from "./store/records.ts";

interface Sink {
  write(bytes: Uint8Array): Promise<Failure | undefined>;
  /** The body did not arrive completely. */
  abort(): Promise<void>;
}

/** A body that a client sends. */
export interface Sent {
  /** The announced number of bytes. */
  readonly size: number;
  /** The digest that the client states. */
  readonly sha256: Uint8Array | undefined;
  /** Pours the body into the sink. After a failure the sink is aborted. */
  readonly pour: (sink: Sink) => Promise<Failure | undefined>;
}

/** Stages the body on the disk of this node. `what` names the body in messages. */
export async function receive(
  { blobs, ownership }: RunDeps,
  { pour, size, sha256 }: Sent,
  what: string,
): Promise<Staged | Failure> {
  if (!(await ownership.known())) return unavailable(new BlobsDown("the marker of the bytes cannot be read"));
  const receiving = await blobs.receive(size);
  if (receiving instanceof BlobsDown) return unavailable(receiving);
  const failed = await pour({
    write: async (bytes) => {
      const down = await receiving.write(bytes);
      return down && unavailable(down);
    },
    abort: () => receiving.discard(),
  });
  if (failed) return failed;
  const staged = await receiving.end();
  if (staged instanceof BlobsDown) return unavailable(staged);
  if (sha256 === undefined || Buffer.compare(staged.sha256, sha256) === 0) return staged;
  await blobs.discard(staged);
  return mismatch(what, sha256, staged.sha256);
}

export interface PutFile {
  readonly path: string;
  readonly size: number;
  readonly sha256: Uint8Array;
  readonly replaced: boolean;
}

/** A file that is sent, and what its client demands of the one that it replaces. */
export interface PutKey extends FileKey {
  readonly precondition?: Precondition;
}

export async function putFile(deps: RunDeps, key: PutKey, sent: Sent): Promise<PutFile | Failure> {
  const { store, clock, owner, bounds, live } = deps;
  const { size } = sent;
  const blobId = makeId("blob_", clock);
  live.add(blobId);
  try {
    const ids = { runId: makeId("run_", clock), blobId, owner };
    const begun = await store.fileBegin({ ...key, size, ...bounds, ...ids, at: seenSeconds(clock) });
    if (begun instanceof StoreDown) return unavailable(begun);
    if (begun === "precondition_failed") return preconditionFailed();
    if (begun !== "begun") return refused(begun, bounds);
    const stored = await storeBytes(deps, key, sent, blobId);
    if (stored instanceof Failure) await store.fileAbort({ accountId: key.accountId, blobId, at: seenSeconds(clock) });
    return stored;
  } finally {
    live.delete(blobId);
  }
}

async function storeBytes(deps: RunDeps, { accountId, path, precondition }: PutKey, sent: Sent, blobId: string) {
  const { store, blobs, clock } = deps;
  const staged = await receive(deps, sent, "the body");
  if (staged instanceof Failure) return staged;
  const down = await blobs.put(staged, blobId);
  if (down) return unavailable(down);
  const { size, sha256 } = staged;
  const storedAt = unixSeconds(clock);
  const times = { at: seenSeconds(clock), storedAt, month: monthOf(storedAt) };
  const stored = await store.fileCommit({ accountId, blobId, sha256, ...times, ...(precondition && { precondition }) });
  if (stored instanceof StoreDown) return unavailable(stored);
  if (stored === "gone") return runGone();
  if (stored === "lost") return unavailable(new StoreDown("the database has lost the reservation of the file"));
  if (stored === "run_completed") return completed();
  if (stored === "precondition_failed") return preconditionFailed();
  return { path, size, sha256, ...stored };
}
