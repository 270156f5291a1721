/**
 * Removes bytes that no file names any more, and ends what processes left that have ended. Every step can be repeated and done by
 * several nodes at once; a store that is down is asked again at the next turn.
 */
import { LIMITS } from "../limits.ts";
import { unixSeconds } from "../std/clock.ts";
import type { Coming, GoneBlob } from "../store/runs/records.ts";
import { StoreDown } from "../store/store.ts";
import { BlobsDown } from "./blob/blobs.ts";
import type { RunDeps } from "./deps.ts";

type Deps = Pick<RunDeps, "store" | "blobs" | "clock" | "log" | "owner" | "live">;

/** Later than anything began. */
const NOW_AND_EVER = Number.MAX_SAFE_INTEGER;

/** At the start: what was running in the process before this one; `all`: no other process uses the store. */
export async function takeOver(deps: Deps, before: string | "all" | undefined): Promise<void> {
  if (before === undefined) return;
  const left = before === "all" ? { owner: undefined, before: NOW_AND_EVER } : { owner: before, before: 0 };
  while (await endLeft(deps, left));
}

export async function sweep(deps: Deps): Promise<void> {
  const { store, clock, owner } = deps;
  const now = unixSeconds(clock);
  await endLeft(deps, { owner, before: now - LIMITS.runLeftSeconds });
  await each(deps, await store.uploadsExpired({ before: now }), ({ id, accountId }) =>
    store.uploadDrop({ accountId, uploadId: id, at: now }),
  );
  await removeGone(deps, now - LIMITS.runGoneSeconds);
}

/** Answers of finished uploads that nobody asks for any more. */
export async function forgetUploads({ store, clock, log }: Deps): Promise<void> {
  const forgotten = await store.uploadsForget({ before: unixSeconds(clock) });
  if (forgotten instanceof StoreDown) failed(log, forgotten);
}

/** Ends what processes left; nothing that this one does. Whether there was something. */
async function endLeft(
  deps: Deps,
  left: { readonly owner: string | undefined; readonly before: number },
): Promise<boolean> {
  const { store, clock } = deps;
  const at = unixSeconds(clock);
  const files = await each(deps, await store.blobsLeft(left), ({ id, accountId }) =>
    store.fileAbort({ accountId, blobId: id, at }),
  );
  const joins = await each(deps, await store.joinsLeft(left), ({ id, accountId, attempt }) =>
    store.joinEnd({ accountId, uploadId: id, attempt, lost: [] }),
  );
  return files + joins > 0;
}

/** How many were ended. */
async function each<One extends Coming>(
  { live, log }: Deps,
  found: readonly (One & { readonly attempt?: string })[] | StoreDown,
  end: (one: One) => Promise<unknown>,
): Promise<number> {
  let count = 0;
  for (const one of found instanceof StoreDown ? [] : found) {
    if (live.has(one.attempt ?? one.id)) continue;
    const ended = await end(one);
    if (ended instanceof StoreDown) return failed(log, ended) ?? count;
    count += 1;
  }
  if (found instanceof StoreDown) failed(log, found);
  return count;
}

function failed(log: Deps["log"], { reason }: StoreDown): undefined {
  log.error("run storage not swept", { reason });
}

/** Bytes that were given up before, then their rows. */
async function removeGone({ store, blobs, log }: Deps, before: number): Promise<void> {
  for (;;) {
    const gone = await store.blobsGone({ before });
    if (gone instanceof StoreDown) return failed(log, gone);
    if (gone.length === 0) return;
    const down = await removeBytes(blobs, gone);
    if (down) return log.error("bytes of deleted files not removed", { reason: down.reason });
    const forgotten = await store.blobsForget({ ids: gone.map(({ id }) => id) });
    if (forgotten instanceof StoreDown) return failed(log, forgotten);
  }
}

/** The row of an assembly's parts is named after the blob that it was to become (store/runs/uploads.ts). */
const PARTS = "parts-";

async function removeBytes(blobs: Deps["blobs"], gone: readonly GoneBlob[]): Promise<BlobsDown | undefined> {
  for (const { id, token } of gone) {
    if (!id.startsWith(PARTS)) continue;
    const down = await blobs.abandon({ id: id.slice(PARTS.length), token: token ?? "" });
    if (down instanceof BlobsDown) return down;
  }
  return await blobs.remove(gone.map(({ id }) => id).filter((id) => id.startsWith("blob_")));
}

/** Removes blobs that no row names, which a lost row leaves behind; young ones stay, in case that their row is on its way. */
export async function compare({ store, blobs, clock, log }: Deps): Promise<void> {
  const before = unixSeconds(clock) - LIMITS.runLeftSeconds;
  let after: string | undefined;
  do {
    const page = await blobs.list(after);
    if (page instanceof BlobsDown) return log.error("blobs not compared", { reason: page.reason });
    const old = page.blobs.filter(({ at }) => at < before).map(({ id }) => id);
    const known = old.length === 0 ? [] : await store.blobsKnown({ ids: old });
    if (known instanceof StoreDown) return log.error("blobs not compared", { reason: known.reason });
    const unknown = new Set(old).difference(new Set(known));
    if (unknown.size > 0) {
      log.info("blobs without a record removed", { count: unknown.size });
      for (const id of unknown) await blobs.abandon({ id, token: "" });
      await blobs.remove([...unknown]);
    }
    after = page.next;
  } while (after !== undefined);
}
