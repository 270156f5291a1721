/**
 * Removes bytes that no file names any more, and ends the unfinished work of ended processes. Every step can be repeated, and several
 * nodes can do it at once. After a failure of a store the next turn tries again.
 */
import { LIMITS } from "../limits.ts";
import { unixSeconds } from "../std/clock.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { BlobsDown } from "./blob/blobs.ts";
import type { RunDeps } from "./gate.ts";
import type { GoneBlob, Unfinished } from "./store/records.ts";
import { PARTS } from "./store/upload-rows.ts";

/** Ends the work of an ended process; `all` means that no other process uses the store. */
export async function takeOver(deps: RunDeps, before: string | "all" | undefined): Promise<void> {
  if (before === undefined) return;
  const left = before === "all" ? { owner: undefined, before: Number.MAX_SAFE_INTEGER } : { owner: before, before: 0 };
  while (await endLeft(deps, left));
}

export async function sweep(deps: RunDeps): Promise<void> {
  const { store, clock, owner } = deps;
  const now = seenSeconds(clock);
  await endLeft(deps, { owner, before: now - LIMITS.runLeftSeconds });
  await each(deps, await store.uploadsExpired({ before: now }), ({ id, accountId }) =>
    store.uploadDrop({ accountId, uploadId: id, at: now }),
  );
  await deps.ownership.keep();
  await removeGone(deps, now);
}

/** Forgets the expired answers of finished uploads. */
export async function forgetUploads({ store, clock, log }: RunDeps): Promise<void> {
  const before = seenSeconds(clock);
  for (;;) {
    const forgotten = await store.uploadsForget({ before });
    if (forgotten instanceof StoreDown) failed(log, forgotten);
    if (forgotten !== "more") return;
  }
}

/** Ends the selected work, except the live work of this process. The result is whether it found something. */
async function endLeft(
  deps: RunDeps,
  of: { readonly owner: string | undefined; readonly before: number },
): Promise<boolean> {
  const { store, clock, live } = deps;
  const at = seenSeconds(clock);
  const left = { ...of, live: [...live] };
  const files = await each(deps, await store.blobsLeft(left), ({ id, accountId }) =>
    store.fileAbort({ accountId, blobId: id, at }),
  );
  const joins = await each(deps, await store.joinsLeft(left), ({ id, accountId, attempt }) =>
    store.joinEnd({ accountId, uploadId: id, attempt, lost: [] }),
  );
  return files + joins > 0;
}

/** Ends each of them that is not live. The result is how many were ended. */
async function each<One extends Unfinished>(
  { live, log }: RunDeps,
  found: readonly One[] | StoreDown,
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

function failed(log: RunDeps["log"], { reason }: StoreDown): undefined {
  log.error("run storage not swept", { reason });
}

/** Removes bytes that have been gone for long enough, then their rows. Bytes that cannot be removed do not delay others. */
async function removeGone(deps: RunDeps, now: number): Promise<void> {
  const { store, log, ownership } = deps;
  const stuck = new Stuck();
  for (;;) {
    const gone = await store.blobsGone({ before: now - LIMITS.runGoneSeconds });
    if (gone instanceof StoreDown) return failed(log, gone);
    if (gone.length === 0 || stuck.enough || !(await ownership.raise())) return stuck.report(log);
    const removed = await removeBytes(deps, gone, stuck);
    const forgotten = await store.blobsForget({ ids: removed });
    if (forgotten instanceof StoreDown) return failed(log, forgotten);
    const deferred = stuck.ids.size === 0 || (await store.blobsDefer({ ids: [...stuck.ids], at: now }));
    if (deferred instanceof StoreDown) return failed(log, deferred);
  }
}

/** The ids that a turn could not remove. */
class Stuck {
  readonly ids = new Set<string>();
  private reason = "";

  add(id: string, { reason }: BlobsDown): void {
    this.ids.add(id);
    this.reason ||= reason;
  }

  /** Whether the turn ends: the whole storage may be down, and each attempt may take minutes. */
  get enough(): boolean {
    return this.ids.size >= LIMITS.runStuckMax;
  }

  report(log: RunDeps["log"]): void {
    const [first = ""] = this.ids;
    if (first === "") return;
    log.error("bytes of deleted files not removed", { count: this.ids.size, first, reason: this.reason });
  }
}

/** Removes bytes. The result is the ids of those that are removed. */
async function removeBytes({ blobs }: RunDeps, gone: readonly GoneBlob[], stuck: Stuck): Promise<string[]> {
  const removed: string[] = [];
  const removeEach = async (ids: readonly string[], remove: (id: string) => Promise<BlobsDown | undefined>) => {
    for (const id of ids) {
      if (stuck.enough) return;
      const down = await remove(id);
      if (down instanceof BlobsDown) stuck.add(id, down);
      else removed.push(id);
    }
  };
  const tokens = new Map(gone.map(({ id, token = "" }) => [id, token]));
  const ids = Map.groupBy(tokens.keys(), (id) => id.startsWith(PARTS));
  await removeEach(ids.get(true) ?? [], (id) =>
    blobs.abandon({ id: id.slice(PARTS.length), token: tokens.get(id) ?? "" }),
  );
  const whole = ids.get(false) ?? [];
  if (whole.length === 0 || stuck.enough) return removed;
  // One that cannot be removed stops the others of its call.
  const down = await blobs.remove(whole);
  if (down instanceof BlobsDown) await removeEach(whole, (id) => blobs.remove([id]));
  else removed.push(...whole);
  return removed;
}

/** Finds blobs that have no row because it was lost; the sweep removes them after some days. Young blobs stay. */
export async function compare(deps: RunDeps): Promise<void> {
  const { store, log, clock, ownership } = deps;
  if (!(await ownership.raise())) return;
  const found = await unnamed(deps);
  if (found instanceof BlobsDown || found instanceof StoreDown) {
    return log.error("blobs not compared", { reason: found.reason });
  }
  const { ids, listed } = found;
  if (ids.length === 0) return;
  if (ids.length > Math.max(LIMITS.runUnnamedMax, listed * LIMITS.runUnnamedShare)) {
    const todo = "tendon admin runs check names them; was the database put back from an old copy?";
    return log.error("blobs without a record not removed: too many", { count: ids.length, of: listed, todo });
  }
  const marked = await store.blobsUnnamed({ ids, at: seenSeconds(clock) + LIMITS.runUnnamedSeconds });
  if (marked instanceof StoreDown) return failed(log, marked);
  const todo = "tendon admin runs check names them; if a newer copy of the database has their files, put it back";
  log.info("blobs without a record", { count: ids.length, removedAfterDays: LIMITS.runUnnamedSeconds / 86_400, todo });
}

/** The old blobs without a row, and the number of all blobs. */
async function unnamed({ store, blobs, clock }: RunDeps) {
  // The ages of bytes are wall time. A jump of that clock does no harm, because a row always precedes its bytes.
  const before = unixSeconds(clock) - LIMITS.runLeftSeconds;
  const ids = new Set<string>();
  let listed = 0;
  let after: string | undefined;
  do {
    const page = await blobs.list(after);
    if (page instanceof BlobsDown) return page;
    listed += page.blobs.length;
    const old = page.blobs.filter(({ at }) => at < before).map(({ id }) => id);
    const known = old.length === 0 ? [] : await store.blobsKnown({ ids: old });
    if (known instanceof StoreDown) return known;
    for (const id of new Set(old).difference(new Set(known))) ids.add(id);
    after = page.next;
  } while (after !== undefined);
  return { ids: [...ids], listed };
}
