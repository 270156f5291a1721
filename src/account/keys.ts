/**
 * A cache of API keys, so that not every request reads the store. It has valid keys, and for a while those that are unknown or revoked.
 *
 * Every `keysAskMs` the store is asked for the number of the last revocation; if it has changed, the cache is emptied. If the
 * store has not answered for `keysBelievedMs`, the cache is not used: a revoked key stops working within a second on every node.
 */
import { LIMITS } from "../limits.ts";
import { type Clock, unixSeconds } from "../std/clock.ts";
import { StoreDown } from "../store/store.ts";
import type { AccountStore } from "./store/accounts.ts";
import type { KeyRecord } from "./store/keys.ts";

export class Keys {
  private readonly known = new Map<string, KeyRecord>();
  /** The store's answers for keys that are not valid, and until when they are believed, monotonic ms. */
  private readonly refused = new Map<string, { readonly record: KeyRecord | undefined; readonly untilMs: number }>();
  /** Public ids that were valid when they were last looked up. They outlive the cache, which every revocation empties. */
  private readonly proven = new Set<string>();
  /** Look-ups on their way, and since when, monotonic ms. */
  private readonly asking = new Map<
    string,
    { readonly sinceMs: number; readonly record: Promise<KeyRecord | undefined | StoreDown> }
  >();
  /** Last uses that the store does not have yet, Unix seconds. */
  private uses = new Map<string, number>();
  private revision: bigint | undefined;
  /** The sending of the last question that was answered. */
  private checkedMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly store: Pick<AccountStore, "keyByPublicId" | "keysRecent" | "keysRevision" | "keysUsed">,
    private readonly clock: Clock,
  ) {}

  /** A request with this key may read the store, from any network: the key has been valid before, or is being looked up anyway. */
  isFree(publicId: string): boolean {
    return this.proven.has(publicId) || this.asked(publicId) !== undefined;
  }

  /** Proves the keys that were used lately, so that they are not unknown after a restart. */
  async recall(): Promise<void> {
    const recent = await this.store.keysRecent(LIMITS.keysProvenMax);
    // The most recently used one is added last, and so dropped last.
    if (!(recent instanceof StoreDown)) for (const publicId of recent.toReversed()) this.prove(publicId);
  }

  /** The key is valid now. One that this process has made works at once, also in a network that sends wrong ones. */
  prove(publicId: string): void {
    if (this.proven.has(publicId)) return;
    dropOldest(this.proven, LIMITS.keysProvenMax);
    this.proven.add(publicId);
  }

  /** The look-up of this key that is on its way. */
  private asked(publicId: string): Promise<KeyRecord | undefined | StoreDown> | undefined {
    const asked = this.asking.get(publicId);
    // An older question may be answered with the state before a revocation.
    return asked && this.clock.monotonicMs() - asked.sinceMs < LIMITS.keysAskMs ? asked.record : undefined;
  }

  async find(publicId: string): Promise<KeyRecord | undefined | StoreDown> {
    const fresh = this.clock.monotonicMs() - this.checkedMs < LIMITS.keysBelievedMs;
    const known = fresh ? this.known.get(publicId) : undefined;
    if (known) return known;
    const refused = this.refused.get(publicId);
    if (refused !== undefined && this.clock.monotonicMs() < refused.untilMs) return refused.record;
    return await (this.asked(publicId) ?? this.ask(publicId, fresh));
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
    const { revision } = this;
    const record = await this.store.keyByPublicId(publicId);
    if (record instanceof StoreDown) return record;
    if (!record || record.revokedAt !== undefined) {
      this.refuse(publicId, record);
      return record;
    }
    this.prove(publicId);
    // If keys were revoked since it was asked for, the record may be older than that.
    if (!fresh || revision !== this.revision) return record;
    // The oldest entry is dropped: if its key is still in use, its next request reads it again.
    dropOldest(this.known, LIMITS.keysKnownMax);
    this.known.set(publicId, record);
    return record;
  }

  /** Records a use; `flush` writes it to the store. */
  used(publicId: string): void {
    this.uses.set(publicId, unixSeconds(this.clock));
  }

  /** Asks the store for revocations; called by a timer. */
  async refresh(): Promise<void> {
    const askedMs = this.clock.monotonicMs();
    const revision = await this.store.keysRevision();
    // An older question may be answered after a newer one: what it says is over.
    if (revision instanceof StoreDown || askedMs < this.checkedMs) return;
    // The first answer after a pause empties the cache as well if keys were revoked during the pause.
    if (revision !== this.revision) this.known.clear();
    this.revision = revision;
    this.checkedMs = askedMs;
  }

  /** Writes the uses to the store; if it is down they are kept for the next call. */
  async flush(): Promise<void> {
    const { uses } = this;
    if (uses.size === 0) return;
    this.uses = new Map();
    const done = await this.store.keysUsed([...uses].map(([publicId, at]) => ({ publicId, at })));
    if (done instanceof StoreDown) for (const [id, at] of uses) if (!this.uses.has(id)) this.uses.set(id, at);
  }

  private refuse(publicId: string, record: KeyRecord | undefined): void {
    this.proven.delete(publicId);
    this.refused.delete(publicId);
    dropOldest(this.refused, LIMITS.keysRefusedMax);
    this.refused.set(publicId, { record, untilMs: this.clock.monotonicMs() + LIMITS.keysRefusedMs });
  }
}

function dropOldest(kept: Map<string, unknown> | Set<string>, max: number): void {
  if (kept.size < max) return;
  const [oldest] = kept.keys();
  if (oldest !== undefined) kept.delete(oldest);
}
