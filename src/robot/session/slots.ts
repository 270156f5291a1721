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

export class SlotPool implements SessionSlots {
  /** Free slots of each replica. */
  private readonly free: number[][];
  private readonly perReplica: number;

  constructor(private readonly memory: SlotMemory) {
    this.perReplica = memory.slots / memory.replicas;
    assert(Number.isInteger(this.perReplica), "each replica has the same number of slots");
    this.free = Array.from({ length: memory.replicas }, (_, replica) =>
      Array.from({ length: this.perReplica }, (__, slot) => replica * this.perReplica + slot).reverse(),
    );
  }

  get freeCount(): number {
    return this.free.reduce((sum, slots) => sum + slots.length, 0);
  }

  take(): number | undefined {
    const emptiest = this.free.reduce((best, slots) => (slots.length > best.length ? slots : best));
    return emptiest.pop();
  }

  give(slot: number): void {
    const home = present(this.free[Math.floor(slot / this.perReplica)], "the slot's replica");
    assert(!home.includes(slot), "a slot is given back once");
    this.memory.sessionDrop(slot);
    home.push(slot);
  }
}
