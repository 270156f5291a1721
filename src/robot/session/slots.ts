/** The free session slots of a model with episode memory, and how long an account waits for one. */

import { LIMITS } from "../../limits.ts";
import { assert, present } from "../../std/assert.ts";
import { type Busy, expiresMs, type Idle } from "./machine.ts";

/** What of a model the slots need. */
export interface SlotMemory {
  /** Slots over all replicas; slot i stands on replica ⌊i / (slots / replicas)⌋. */
  readonly slots: number;
  readonly replicas: number;
  sessionDrop(slot: number): void;
}

/** While no more than this share is free, only accounts without a session get a slot (contract section 2). */
const KEPT_SHARE = 1 / 8;

export class SlotPool {
  /** Who has each taken slot, and how many of them. */
  private readonly owners = new Map<number, string>();
  private readonly counts = new Map<string, number>();
  /** Free slots of each replica. */
  private readonly free: number[][];
  private readonly perReplica: number;
  /** Replicas that are out. */
  private readonly lost = new Set<number>();
  /** Replicas whose sessions are awaited, with who awaits them. */
  private readonly draining = new Map<number, PromiseWithResolvers<void>>();

  constructor(private readonly memory: SlotMemory) {
    this.perReplica = memory.slots / memory.replicas;
    assert(Number.isInteger(this.perReplica), "each replica has the same number of slots");
    this.free = Array.from({ length: memory.replicas }, (_, replica) =>
      Array.from({ length: this.perReplica }, (__, slot) => replica * this.perReplica + slot).reverse(),
    );
  }

  /** Slots that are kept for accounts that have none, of those whose replicas work. */
  private get kept(): number {
    const closed = new Set([...this.lost, ...this.draining.keys()]);
    const working = this.perReplica * (this.memory.replicas - closed.size);
    return Math.max(Math.floor(working * KEPT_SHARE), working >= 2 ? 1 : 0);
  }

  get freeCount(): number {
    return this.free.reduce((sum, slots) => sum + slots.length, 0);
  }

  /**
   * A slot on the replica with the fewest sessions. Undefined when all are taken, or when the account has one and only the
   * kept share is free.
   */
  take(accountId: string): number | undefined {
    if (this.missing(accountId) > 0) return undefined;
    const emptiest = this.free.reduce((best, slots) => (slots.length > best.length ? slots : best));
    const slot = present(emptiest.pop(), "a free slot");
    this.owners.set(slot, accountId);
    this.counts.set(accountId, (this.counts.get(accountId) ?? 0) + 1);
    return slot;
  }

  /** Slots that must come free before the account gets one. */
  missing(accountId: string): number {
    const needed = this.counts.has(accountId) ? this.kept + 1 : 1;
    return Math.max(0, needed - this.freeCount);
  }

  /** Forgets what the memory of the slot holds. */
  give(slot: number): void {
    const home = present(this.free[this.replicaOf(slot)], "the slot's replica");
    assert(!home.includes(slot), "a slot is given back once");
    this.forget(slot);
    // Its memory is not to be had any more.
    if (this.isLost(slot)) return;
    this.memory.sessionDrop(slot);
    const replica = this.replicaOf(slot);
    const drained = this.draining.get(replica);
    if (!drained) home.push(slot);
    else if (this.isEmpty(replica)) drained.resolve();
  }

  /** The replica is out: its slots are neither given nor taken back. */
  lose(replica: number): void {
    this.lost.add(replica);
    this.free[replica] = [];
    this.draining.get(replica)?.resolve();
  }

  /** Gives no more slots of the replica. Resolves when no session has one. */
  drain(replica: number): Promise<void> {
    const drained = this.draining.get(replica) ?? Promise.withResolvers<void>();
    this.draining.set(replica, drained);
    this.free[replica] = [];
    if (this.isEmpty(replica) || this.lost.has(replica)) drained.resolve();
    return drained.promise;
  }

  /** Gives slots of a drained replica again. */
  resume(replica: number): void {
    if (!this.draining.delete(replica) || this.lost.has(replica)) return;
    const all = Array.from({ length: this.perReplica }, (_, slot) => replica * this.perReplica + slot);
    this.free[replica] = all.filter((slot) => !this.owners.has(slot)).reverse();
  }

  isLost(slot: number): boolean {
    return this.lost.has(this.replicaOf(slot));
  }

  /** Whether another session can get the slot after this one. */
  comesFree(slot: number): boolean {
    return !this.isLost(slot) && !this.draining.has(this.replicaOf(slot));
  }

  private replicaOf(slot: number): number {
    return Math.floor(slot / this.perReplica);
  }

  private isEmpty(replica: number): boolean {
    return [...this.owners.keys()].every((slot) => this.replicaOf(slot) !== replica);
  }

  private forget(slot: number): void {
    const owner = present(this.owners.get(slot), "the account of a taken slot");
    const left = (this.counts.get(owner) ?? 0) - 1;
    this.owners.delete(slot);
    if (left > 0) this.counts.set(owner, left);
    else this.counts.delete(owner);
  }
}

/** What of a live session the answer needs. */
interface Live {
  readonly accountId: string;
  readonly state: Idle | Busy;
  readonly slots: SlotPool | undefined;
  readonly slot: number | undefined;
}

/**
 * Whole seconds, at least 1: until the number of missing sessions can have ended, or all of the account's own, since an account
 * without a session also gets a slot that is kept.
 */
export function secondsToFree({ accountId, slots }: Live, live: Iterable<Live>, nowMs: number): number {
  const beside = [...live].filter((one) => one.slots === slots && hasPlace(one));
  const ends = beside
    .filter(givesPlace)
    .map(({ state }) => earliestEndMs(state, nowMs))
    .toSorted((a, b) => a - b);
  const own = beside.filter((one) => one.accountId === accountId);
  const ownEndMs = Math.max(...own.map(({ state }) => earliestEndMs(state, nowMs)));
  const missing = slots?.missing(accountId) ?? 1;
  const keptIsFree = own.length > 0 && slots !== undefined && slots.freeCount > 0;
  const dueMs = Math.min(ends[missing - 1] ?? Infinity, keptIsFree ? ownEndMs : Infinity, nowMs + LIMITS.sessionIdleMs);
  return Math.max(1, Math.ceil((dueMs - nowMs) / 1000));
}

/** Without slots each session has a place. */
function hasPlace({ slots, slot }: Live): boolean {
  return slots === undefined || slot !== undefined;
}

/** Whether its end makes room for another one. */
function givesPlace({ slots, slot }: Live): boolean {
  return slots === undefined || slot === undefined || slots.comesFree(slot);
}

/** Monotonic ms when a session can give its place back: at once when it only waits for its last chunk. */
function earliestEndMs(state: Idle | Busy, nowMs: number): number {
  if (state.kind === "idle") return expiresMs(state);
  return state.ending ? nowMs : nowMs + LIMITS.sessionIdleMs;
}
