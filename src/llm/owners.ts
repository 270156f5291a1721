/**
 * The processes that own running responses. Each shows that it lives by a number that it raises. A process whose number does not change has
 * ended, and another one ends its responses. Numbers are used, not times, so that a clock that jumps ends nothing. Only time counts in
 * which this process could write and read the table without a gap: an outage keeps every process from raising its number.
 */
import { LIMITS } from "../limits.ts";
import { seenSeconds } from "../std/seen-clock.ts";
import { StoreDown } from "../store/store.ts";
import type { LlmDeps } from "./deps.ts";
import { stopped } from "./errors.ts";
import { failedObject, parsedObject } from "./output/object.ts";
import type { Orphan } from "./store/records.ts";

type Deps = Pick<LlmDeps, "clock" | "log" | "store" | "owner" | "watchers" | "ownerEnded">;

export class Owners {
  private readonly seen = new Map<string, { readonly beat: bigint; readonly sinceMs: number }>();
  /** The last look that was answered. */
  private lookedMs = 0;

  constructor(private readonly deps: Deps) {}

  /**
   * `alone`: no other process has this store, so all others have ended. `before`: one that is known to have ended, since this
   * process has the data folder that it had.
   */
  async start(alone: boolean, before?: string): Promise<void> {
    await this.deps.store.ownerBeat({ owner: this.deps.owner });
    if (before !== undefined && !alone) await this.endAll(before);
    await this.look(alone ? 0 : LIMITS.llmBeatMissedMs);
  }

  async beat(): Promise<void> {
    const beaten = await this.deps.store.ownerBeat({ owner: this.deps.owner });
    // A store that takes no beat of this process may take none of the others.
    if (beaten instanceof StoreDown) this.seen.clear();
    else await this.look(LIMITS.llmBeatMissedMs);
  }

  /** Removes this process, at its end. */
  async stop(): Promise<void> {
    await this.deps.store.ownerForget({ owner: this.deps.owner });
  }

  private async look(missedMs: number): Promise<void> {
    const { clock, log, store, owner: own } = this.deps;
    const found = await store.owners();
    if (found instanceof StoreDown) return this.seen.clear();
    const now = clock.monotonicMs();
    // This process stood still, or waited for the store.
    if (now - this.lookedMs > 2 * LIMITS.llmBeatMs) this.seen.clear();
    this.lookedMs = now;
    for (const { owner, beat } of found) {
      if (owner === own) continue;
      const known = this.seen.get(owner);
      if (known?.beat !== beat) this.seen.set(owner, { beat, sinceMs: now });
      if (now - (this.seen.get(owner)?.sinceMs ?? now) < missedMs) continue;
      log.info("owner ended", { owner });
      if (await this.endAll(owner)) this.seen.delete(owner);
    }
  }

  /** Whether nothing of it is left. */
  private async endAll(owner: string): Promise<boolean> {
    const { store } = this.deps;
    for (;;) {
      const orphans = await store.orphans({ owner });
      if (orphans instanceof StoreDown) return false;
      if (orphans.length === 0) break;
      for (const orphan of orphans) {
        if ((await this.end(orphan, owner)) instanceof StoreDown) return false;
      }
    }
    await this.deps.ownerEnded(owner);
    return !((await store.ownerForget({ owner })) instanceof StoreDown);
  }

  /** Its provider may have been called, so its key is spent; a job has an answer, which says so. */
  private end({ id, accountId, object, job }: Orphan, owner: string): Promise<unknown> {
    const { clock, store, log, watchers } = this.deps;
    log.info("response ended", { response: id, reason: "its process has ended" });
    const at = seenSeconds(clock);
    const failed = object && JSON.stringify(failedObject(parsedObject(object), stopped()));
    const ending = store.end({ id, accountId, owner, at, object: failed, key: job ? "answer" : "terminal" });
    return ending.finally(() => watchers.tell(id));
  }
}
