/**
 * Whether this database may remove bytes. A marker beside them names one database and its generation, which is a text that is used
 * once. Each removal begins a new generation, first in the database, then in the marker if nobody changed it. So a restored or cloned
 * database is behind the marker, and of two that are not, one is from the next removal on.
 */
import { LIMITS } from "../limits.ts";
import { makeId, randomBase62 } from "../std/ids.ts";
import type { Log } from "../std/log.ts";
import { type SeenClock, seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import { type Blobs, BlobsDown } from "./blob/blobs.ts";
import type { RunStore } from "./store/runs.ts";

interface Deps {
  readonly store: Pick<RunStore, "runsMark">;
  readonly blobs: Pick<Blobs, "marker" | "mark">;
  readonly clock: SeenClock;
}

/** Other nodes of this database may change the marker at the same time. */
const TRIES_MAX = 5;
const STORE_ID_CHARS = 16;

/**
 * Begins the next generation, in the database and in the marker. `adopt` takes bytes over that have another marker, or none; otherwise
 * the outcome has the marker that was `found`, and the `own` one that this database expects.
 */
export async function nextGeneration(
  { store, blobs, clock }: Deps,
  adopt = false,
): Promise<{ readonly marker: string } | { readonly found: string; readonly own: string } | StoreDown | BlobsDown> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const found = await blobs.marker();
    if (found instanceof BlobsDown) return found;
    const id = `store_${randomBase62(STORE_ID_CHARS)}`;
    const next = await store.runsMark({ found, id, generation: makeId("gen_", clock), adopt });
    if (next instanceof StoreDown) return next;
    if ("own" in next) {
      // Otherwise another node of this database replaced it meanwhile.
      if ((await blobs.marker()) === found) return { ...next, found };
      continue;
    }
    const marked = await blobs.mark(found, next.marker);
    if (marked instanceof BlobsDown) return marked;
    if (marked) return next;
  }
  return new BlobsDown("the marker of the bytes changes all the time");
}

const MISSING =
  "the storage of runs has no marker, but its database has files: is a volume not mounted, or another bucket meant? Put it back; if the bytes are lost, or lie there without their marker: tendon admin runs adopt";
const FOREIGN =
  "name the database and the folder or bucket that belong together; if this database is a copy that is to go on with these bytes: tendon admin runs check, then tendon admin runs adopt";

export class Ownership {
  /** The sentence for the operator while the database has files and the bytes have no marker. */
  missing: string | undefined;
  private seen = false;
  private raising: Promise<boolean> | undefined;
  private raisedAt = Number.NEGATIVE_INFINITY;
  private said = "";

  constructor(
    private readonly deps: Deps,
    private readonly log: Log,
  ) {}

  /** Begins the next generation if the last one is old, so that a copy of the database is soon behind. */
  async keep(): Promise<void> {
    if (seenSeconds(this.deps.clock) - this.raisedAt >= LIMITS.runGenerationSeconds) await this.raise();
  }

  /** Whether the bytes have a marker. Nothing is stored before, so that files never lie without one. */
  async known(): Promise<boolean> {
    if (!this.seen) await this.raise();
    return this.seen && this.missing === undefined;
  }

  /** Begins the next generation. Only if the result is true may bytes be removed. Calls at the same time share one. */
  raise(): Promise<boolean> {
    this.raising ??= this.next().finally(() => {
      this.raising = undefined;
    });
    return this.raising;
  }

  private async next(): Promise<boolean> {
    const next = await nextGeneration(this.deps);
    if (next instanceof StoreDown || next instanceof BlobsDown) {
      return this.refuse("their database is not known", { reason: next.reason });
    }
    this.seen = true;
    this.missing = "own" in next && next.found === "" ? MISSING : undefined;
    if ("own" in next) {
      const { found: blobs, own: database } = next;
      const why = this.missing === undefined ? "they belong to another database, or to a newer one" : "no marker";
      return this.refuse(why, { database, blobs, todo: this.missing ?? FOREIGN });
    }
    this.raisedAt = seenSeconds(this.deps.clock);
    this.said = "";
    return true;
  }

  /** Says it once. */
  private refuse(why: string, facts: Readonly<Record<string, string>>): false {
    const said = JSON.stringify([why, facts]);
    if (said !== this.said) this.log.error(`no bytes of runs removed: ${why}`, facts);
    this.said = said;
    return false;
  }
}
