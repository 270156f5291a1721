/** The free session slots of a model with episode memory, and how long an account waits for one. */
import type { Model } from "../../engine/engine.ts";
import { LIMITS } from "../../limits.ts";
import { assert, present } from "../../std/assert.ts";
import { type Busy, expiresMs, type Idle } from "./machine.ts";

/** The last slots, in this share of all, are kept for accounts without a session (contract section 2). */
const KEPT_SHARE = 1 / 8;

export class SlotPool {
  /** The account of each taken slot, and the number of slots of each account. */
  private readonly owners = new Map<number, string>();
  private readonly counts = new Map<string, number>();
  /** Free slots of each replica. */
  private readonly free: number[][];
  private readonly perReplica: number;
  /** Replicas that are out. */
  private readonly lost = new Set<number>();
  /** Replicas that get no more sessions; each promise resolves when the last one of them has ended. */
  private readonly draining = new Map<number, PromiseWithResolvers<void>>();

  /** `memory`: slot i is on replica ⌊i / (slots / replicas)⌋. */
  constructor(private readonly memory: Pick<Model, "slots" | "replicas" | "sessionDrop">) {
    this.perReplica = memory.slots / memory.replicas;
    assert(Number.isInteger(this.perReplica), "each replica has the same number of slots");
    this.free = Array.from({ length: memory.replicas }, (_, replica) => this.slotsOf(replica));
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
    const replica = this.replicaOf(slot);
    const home = present(this.free[replica], "the slot's replica");
    this.forget(slot);
    if (this.lost.has(replica)) return;
    this.memory.sessionDrop(slot);
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
    this.free[replica] = this.slotsOf(replica).filter((slot) => !this.owners.has(slot));
  }

  isLost(slot: number): boolean {
    return this.lost.has(this.replicaOf(slot));
  }

  /** Another session can get the slot after this one. */
  comesFree(slot: number): boolean {
    return !this.isLost(slot) && !this.draining.has(this.replicaOf(slot));
  }

  /** Every slot of the replica; they are taken from the end. */
  private slotsOf(replica: number): number[] {
    const first = replica * this.perReplica;
    return Array.from({ length: this.perReplica }, (_, at) => first + at).reverse();
  }

  private replicaOf(slot: number): number {
    return Math.floor(slot / this.perReplica);
  }

  private isEmpty(replica: number): boolean {
    return [...this.owners.keys()].every((slot) => this.replicaOf(slot) !== replica);
  }

  private forget(slot: number): void {
    const owner = this.owners.get(slot);
    assert(owner !== undefined, "a slot is given back once");
    const left = (this.counts.get(owner) ?? 0) - 1;
    this.owners.delete(slot);
    if (left > 0) this.counts.set(owner, left);
    else this.counts.delete(owner);
  }
}

/** A live session, and its slot where it has one. */
interface Live {
  readonly accountId: string;
  readonly state: Idle | Busy;
  readonly slots: SlotPool | undefined;
  readonly slot: number | undefined;
}

/**
 * Whole seconds, at least 1, until a session of this account can open: enough sessions have ended by then, or all of the account's own,
 * since an account without a session also gets a slot that is kept.
 */
export function secondsToFree({ accountId, slots }: Live, live: Iterable<Live>, nowMs: number): number {
  // Without slots every session counts.
  const beside = [...live].filter((one) => one.slots === slots && (slots === undefined || one.slot !== undefined));
  const ends = beside
    .filter((one) => one.slot === undefined || one.slots?.comesFree(one.slot) !== false)
    .map(({ state }) => earliestEndMs(state, nowMs))
    .toSorted((a, b) => a - b);
  const own = beside.filter((one) => one.accountId === accountId);
  const ownEndMs = Math.max(...own.map(({ state }) => earliestEndMs(state, nowMs)));
  const missing = slots?.missing(accountId) ?? 1;
  const keptIsFree = own.length > 0 && slots !== undefined && slots.freeCount > 0;
  const dueMs = Math.min(ends[missing - 1] ?? Infinity, keptIsFree ? ownEndMs : Infinity, nowMs + LIMITS.sessionIdleMs);
  return Math.max(1, Math.ceil((dueMs - nowMs) / 1000));
}

/** Monotonic ms when a session can end: at once when it only waits for its last chunk. */
function earliestEndMs(state: Idle | Busy, nowMs: number): number {
  if (state.kind === "idle") return expiresMs(state);
  return state.ending ? nowMs : nowMs + LIMITS.sessionIdleMs;
}
