/** The free session slots of a model with episode memory. The session table knows which session holds which. */

import { assert, present } from "../../std/assert.ts";
import type { SessionSlots } from "../exclusive.ts";

/** What of a model the slots need. */
export interface SlotMemory {
  /** Slots over all replicas; slot i stands on replica ⌊i / (slots / replicas)⌋. */
  readonly slots: number;
  readonly replicas: number;
  sessionDrop(slot: number): void;
}

/** While no more than this share is free, only accounts without a session get a slot (contract section 2). */
const KEPT_SHARE = 1 / 8;

export class SlotPool implements SessionSlots {
  /** Who has each taken slot, and how many of them. */
  private readonly owners = new Map<number, string>();
  private readonly counts = new Map<string, number>();
  /** Slots that are kept for accounts that have none. */
  private readonly kept: number;
  /** Free slots of each replica. */
  private readonly free: number[][];
  private readonly perReplica: number;

  constructor(private readonly memory: SlotMemory) {
    this.kept = Math.max(Math.floor(memory.slots * KEPT_SHARE), memory.slots >= 2 ? 1 : 0);
    this.perReplica = memory.slots / memory.replicas;
    assert(Number.isInteger(this.perReplica), "each replica has the same number of slots");
    this.free = Array.from({ length: memory.replicas }, (_, replica) =>
      Array.from({ length: this.perReplica }, (__, slot) => replica * this.perReplica + slot).reverse(),
    );
  }

  get freeCount(): number {
    return this.free.reduce((sum, slots) => sum + slots.length, 0);
  }

  take(accountId: string): number | undefined {
    if (this.missing(accountId) > 0) return undefined;
    const emptiest = this.free.reduce((best, slots) => (slots.length > best.length ? slots : best));
    const slot = present(emptiest.pop(), "a free slot");
    this.owners.set(slot, accountId);
    this.counts.set(accountId, (this.counts.get(accountId) ?? 0) + 1);
    return slot;
  }

  missing(accountId: string): number {
    const needed = this.counts.has(accountId) ? this.kept + 1 : 1;
    return Math.max(0, needed - this.freeCount);
  }

  give(slot: number): void {
    const home = present(this.free[Math.floor(slot / this.perReplica)], "the slot's replica");
    assert(!home.includes(slot), "a slot is given back once");
    this.forget(slot);
    this.memory.sessionDrop(slot);
    home.push(slot);
  }

  private forget(slot: number): void {
    const owner = present(this.owners.get(slot), "the account of a taken slot");
    const left = (this.counts.get(owner) ?? 0) - 1;
    this.owners.delete(slot);
    if (left > 0) this.counts.set(owner, left);
    else this.counts.delete(owner);
  }
}
