/**
 * The keys that were used lately, so that a request need not ask the store.
 *
 * An entry is found by public id and compared by hash. Every quarter of a second the store is asked whether any key was
 * revoked since, and if so everything is forgotten. When that question has had no answer for a second, nothing is believed any
 * more: a revoked key ends within a second on every node, or nobody gets in.
 */
import { LIMITS } from "../limits.ts";
import type { Clock } from "../std/clock.ts";
import type { AccountStore } from "../store/accounts/accounts.ts";
import type { KeyRecord } from "../store/accounts/records.ts";
import { StoreDown } from "../store/store.ts";

export class Keys {
  private readonly known = new Map<string, KeyRecord>();
  /** When each key was last used, Unix seconds, since the store was told. */
  private uses = new Map<string, number>();
  private revision: bigint | undefined;
  /** When the last answered question was asked. */
  private checkedMs = Number.NEGATIVE_INFINITY;
  /** Another number after everything was forgotten: what was asked for before is not kept. */
  private epoch = 0;

  constructor(
    private readonly store: Pick<AccountStore, "keyByPublicId" | "keysRevision" | "keysUsed">,
    private readonly clock: Clock,
  ) {}

  /** A valid key's record. */
  async find(publicId: string): Promise<KeyRecord | undefined | StoreDown> {
    const fresh = this.clock.monotonicMs() - this.checkedMs < LIMITS.keysBelievedMs;
    const known = fresh ? this.known.get(publicId) : undefined;
    if (known) return known;
    const { epoch } = this;
    const record = await this.store.keyByPublicId(publicId);
    if (record instanceof StoreDown || !record || record.revokedAt !== undefined) return record;
    if (fresh && epoch === this.epoch) this.remember(record);
    return record;
  }

  /** Told to the store now and then, not with every request. */
  used(publicId: string): void {
    this.uses.set(publicId, Math.floor(this.clock.unixMs() / 1000));
  }

  /** Asks for revocations; called by a timer. */
  async refresh(): Promise<void> {
    const askedMs = this.clock.monotonicMs();
    const revision = await this.store.keysRevision();
    if (revision instanceof StoreDown) return;
    // After a pause keys may have been revoked and entries kept that nobody has looked at since.
    if (revision !== this.revision) this.forget();
    this.revision = revision;
    this.checkedMs = Math.max(this.checkedMs, askedMs);
  }

  /** Writes down when keys were used; what the store does not take is tried again. */
  async flush(): Promise<void> {
    const { uses } = this;
    if (uses.size === 0) return;
    this.uses = new Map();
    const done = await this.store.keysUsed([...uses].map(([publicId, at]) => ({ publicId, at })));
    if (done instanceof StoreDown) for (const [id, at] of uses) if (!this.uses.has(id)) this.uses.set(id, at);
  }

  private remember(record: KeyRecord): void {
    // The oldest goes: keys that are in use come back with their next request.
    if (this.known.size >= LIMITS.keysKnownMax) {
      const [oldest] = this.known.keys();
      if (oldest !== undefined) this.known.delete(oldest);
    }
    this.known.set(record.publicId, record);
  }

  private forget(): void {
    this.known.clear();
    this.epoch += 1;
  }
}
