/**
 * Removes bytes that no file names any more, and ends what processes left that have ended. Every step can be repeated and done by
 * several nodes at once; a store that is down is asked again at the next turn.
 */
import { LIMITS } from "../limits.ts";
import { unixSeconds } from "../std/clock.ts";
import { randomBase62 } from "../std/ids.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { BlobsDown } from "./blob/blobs.ts";
import type { RunDeps } from "./deps.ts";
import type { Coming, GoneBlob } from "./store/records.ts";

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
  const now = seenSeconds(clock);
  await endLeft(deps, { owner, before: now - LIMITS.runLeftSeconds });
  await each(deps, await store.uploadsExpired({ before: now }), ({ id, accountId }) =>
    store.uploadDrop({ accountId, uploadId: id, at: now }),
  );
  if (await ours(deps)) await removeGone(deps, now);
}

/** Answers of finished uploads that nobody asks for any more. */
export async function forgetUploads({ store, clock, log }: Deps): Promise<void> {
  const before = seenSeconds(clock);
  for (;;) {
    const forgotten = await store.uploadsForget({ before });
    if (forgotten instanceof StoreDown) failed(log, forgotten);
    if (forgotten !== "more") return;
  }
}

/** Ends what processes left; nothing that this one does. Whether there was something. */
async function endLeft(
  deps: Deps,
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

/** Whether the bytes are those of this store of records: otherwise no row names them, and all of them would be removed. */
async function ours({ store, blobs, log }: Deps): Promise<boolean> {
  const known = await store.storeIdKnown();
  const records = known ?? (await store.storeId({ id: `store_${randomBase62(STORE_ID_CHARS)}` }));
  if (records instanceof StoreDown) return failed(log, records) ?? false;
  const bytes = await blobs.identity(records);
  if (bytes instanceof BlobsDown) {
    log.error("no bytes of runs removed: their database is not known", { reason: bytes.reason });
    return false;
  }
  if (bytes === records) return true;
  log.error("no bytes of runs removed: they belong to another database", {
    database: records,
    blobs: bytes,
    todo: REMEDY,
  });
  return false;
}

const STORE_ID_CHARS = 16;

const REMEDY =
  "name the database and the folder or bucket that belong together, then restart; tendon admin runs check compares them";

/** Bytes that were given up long enough ago, then their rows. What cannot be removed waits, and nothing waits for it. */
async function removeGone(deps: Deps, now: number): Promise<void> {
  const { store, log } = deps;
  const stuck = new Stuck();
  for (;;) {
    const gone = await store.blobsGone({ before: now - LIMITS.runGoneSeconds });
    if (gone instanceof StoreDown) return failed(log, gone);
    if (gone.length === 0 || stuck.enough) return stuck.tell(log);
    const removed = await removeBytes(deps, gone, stuck);
    const forgotten = await store.blobsForget({ ids: removed });
    if (forgotten instanceof StoreDown) return failed(log, forgotten);
    const deferred = stuck.ids.size === 0 || (await store.blobsDefer({ ids: [...stuck.ids], at: now }));
    if (deferred instanceof StoreDown) return failed(log, deferred);
  }
}

/** What of a turn could not be removed. */
class Stuck {
  readonly ids = new Set<string>();
  private reason = "";

  add(id: string, { reason }: BlobsDown): void {
    this.ids.add(id);
    this.reason ||= reason;
  }

  /** Then the whole storage may be down, and each try may take minutes: the next turn goes on with others. */
  get enough(): boolean {
    return this.ids.size >= LIMITS.runStuckMax;
  }

  tell(log: Deps["log"]): void {
    const [first = ""] = this.ids;
    if (first === "") return;
    log.error("bytes of deleted files not removed", { count: this.ids.size, first, reason: this.reason });
  }
}

/** The row of an assembly's parts is named after the blob that it was to become (store/runs/uploads.ts). */
const PARTS = "parts-";

/** The ids of those that are removed. */
async function removeBytes({ blobs }: Pick<Deps, "blobs">, gone: readonly GoneBlob[], stuck: Stuck): Promise<string[]> {
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
  // One that is in the way stops the others.
  const down = await blobs.remove(whole);
  if (down instanceof BlobsDown) await removeEach(whole, (id) => blobs.remove([id]));
  else removed.push(...whole);
  return removed;
}

/** Removes blobs that no row names, which a lost row leaves behind; young ones stay, in case that their row is on its way. */
export async function compare(deps: Deps): Promise<void> {
  const { log, clock } = deps;
  if (!(await ours(deps))) return;
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
  const stuck = new Stuck();
  // From another one each time: those that cannot be removed end a turn, and must not be the first of every one.
  const from = seenSeconds(clock) % ids.length;
  const gone = [...ids.slice(from), ...ids.slice(0, from)].flatMap((id) => [
    { id: PARTS + id, token: undefined },
    { id, token: undefined },
  ]);
  const removed = await removeBytes(deps, gone, stuck);
  stuck.tell(log);
  log.info("blobs without a record removed", { count: removed.filter((id) => !id.startsWith(PARTS)).length });
}

/** Of all blobs that are listed. */
async function unnamed({ store, blobs, clock }: Deps) {
  // By the wall clock, as the ages of the bytes are. Where that jumps it only misjudges this age: a row always comes before its bytes.
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
