/**
 * A cache of API keys, so that not every request reads the store: of valid ones, and of those that the store does not know or that
 * are revoked, which stay so.
 *
 * Every `keysAskMs` the store is asked for the number of the last revocation; if it has changed, the cache is emptied. If the
 * store has not answered for `keysBelievedMs`, the cache is not used: a revoked key stops working within a second on every node.
 */
import { LIMITS } from "../limits.ts";
import { type Clock, unixSeconds } from "../std/clock.ts";
import { StoreDown } from "../store/store.ts";
import { keyPublicId } from "./key.ts";
import type { AccountStore } from "./store/accounts.ts";
import type { KeyRecord } from "./store/keys.ts";

export class Keys {
  private readonly known = new Map<string, KeyRecord>();
  /** What the store said of keys that are not valid, and until when that is believed, monotonic ms. */
  private readonly refused = new Map<string, { readonly record: KeyRecord | undefined; readonly untilMs: number }>();
  /** Public ids that were valid when they were last looked up. They outlive the cache, which every revocation empties. */
  private readonly proven = new Set<string>();
  /** Look-ups on their way, and since when, monotonic ms. */
  private readonly asking = new Map<
    string,
    { readonly sinceMs: number; readonly record: Promise<KeyRecord | undefined | StoreDown> }
  >();
  /** When each key was last used, Unix seconds; what the store does not have yet. */
  private uses = new Map<string, number>();
  private revision: bigint | undefined;
  /** When the last question that was answered had been sent. */
  private checkedMs = Number.NEGATIVE_INFINITY;
  /** Increased when the cache is emptied: a record that was requested before is not put into it. */
  private epoch = 0;

  constructor(
    private readonly store: Pick<AccountStore, "keyByPublicId" | "keysRecent" | "keysRevision" | "keysUsed">,
    private readonly clock: Clock,
  ) {}

  /** Whether the key with this id has been seen to be valid. Its request may read the store whoever sends it. */
  isProven(publicId: string): boolean {
    return this.proven.has(publicId);
  }

  /** Takes the keys that were used lately as proven, so that a restart does not make strangers of them. */
  async recall(): Promise<void> {
    const recent = await this.store.keysRecent(LIMITS.keysProvenMax);
    // The one used last comes last, so that it is the last to be dropped.
    if (!(recent instanceof StoreDown)) for (const publicId of recent.toReversed()) this.prove(publicId);
  }

  /** This process has made the key: it is no stranger's, also where others of its network send wrong ones. */
  made(key: string): void {
    const publicId = keyPublicId(key);
    if (publicId !== undefined) this.prove(publicId);
  }

  /** Whether the store is being asked for this key just now: whoever sends it as well costs nothing. */
  isAsked(publicId: string): boolean {
    const asked = this.asking.get(publicId);
    // Not for longer: an answer that was on its way for long may be from before a revocation.
    return asked !== undefined && this.clock.monotonicMs() - asked.sinceMs < LIMITS.keysAskMs;
  }

  /** A valid key's record. */
  async find(publicId: string): Promise<KeyRecord | undefined | StoreDown> {
    const fresh = this.clock.monotonicMs() - this.checkedMs < LIMITS.keysBelievedMs;
    const known = fresh ? this.known.get(publicId) : undefined;
    if (known) return known;
    const refused = this.refused.get(publicId);
    if (refused !== undefined && this.clock.monotonicMs() < refused.untilMs) return refused.record;
    const asked = this.isAsked(publicId) ? this.asking.get(publicId) : undefined;
    return await (asked?.record ?? this.ask(publicId, fresh));
  }

  private ask(publicId: string, fresh: boolean): Promise<KeyRecord | undefined | StoreDown> {
    const asked = { sinceMs: this.clock.monotonicMs(), record: this.read(publicId, fresh) };
    this.asking.set(publicId, asked);
    const forget = () => {
      if (this.asking.get(publicId) === asked) this.asking.delete(publicId);
    };
    asked.record.then(forget, forget);
    return asked.record;
  }

  private async read(publicId: string, fresh: boolean): Promise<KeyRecord | undefined | StoreDown> {
    const { epoch } = this;
    const record = await this.store.keyByPublicId(publicId);
    if (record instanceof StoreDown) return record;
    if (!record || record.revokedAt !== undefined) {
      this.refuse(publicId, record);
      return record;
    }
    this.prove(publicId);
    if (fresh && epoch === this.epoch) this.remember(record);
    return record;
  }

  /** Notes a use; `flush` writes it to the store. */
  used(publicId: string): void {
    this.uses.set(publicId, unixSeconds(this.clock));
  }

  /** Asks the store for revocations; called by a timer. */
  async refresh(): Promise<void> {
    const askedMs = this.clock.monotonicMs();
    const revision = await this.store.keysRevision();
    if (revision instanceof StoreDown) return;
    // The first answer after a pause empties the cache as well if keys were revoked during the pause.
    if (revision !== this.revision) {
      this.known.clear();
      this.epoch += 1;
    }
    this.revision = revision;
    this.checkedMs = Math.max(this.checkedMs, askedMs);
  }

  /** Writes the uses to the store; if it is down they are kept for the next call. */
  async flush(): Promise<void> {
    const { uses } = this;
    if (uses.size === 0) return;
    this.uses = new Map();
    const done = await this.store.keysUsed([...uses].map(([publicId, at]) => ({ publicId, at })));
    if (done instanceof StoreDown) for (const [id, at] of uses) if (!this.uses.has(id)) this.uses.set(id, at);
  }

  private remember(record: KeyRecord): void {
    // The oldest entry is dropped: if its key is still in use, its next request reads it again.
    dropOldest(this.known, LIMITS.keysKnownMax);
    this.known.set(record.publicId, record);
  }

  private refuse(publicId: string, record: KeyRecord | undefined): void {
    this.proven.delete(publicId);
    this.refused.delete(publicId);
    dropOldest(this.refused, LIMITS.keysRefusedMax);
    this.refused.set(publicId, { record, untilMs: this.clock.monotonicMs() + LIMITS.keysRefusedMs });
  }

  private prove(publicId: string): void {
    if (this.proven.has(publicId)) return;
    dropOldest(this.proven, LIMITS.keysProvenMax);
    this.proven.add(publicId);
  }
}

/** Makes room for one more entry. */
function dropOldest(kept: Map<string, unknown> | Set<string>, max: number): void {
  if (kept.size < max) return;
  const [oldest] = kept.keys();
  if (oldest !== undefined) kept.delete(oldest);
}
