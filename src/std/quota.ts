/** Bounds on what owners use: permits for what is held at once, and an amount within a moving window. In this process's memory. */
import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";

/** Permits for what is held at once: `max` in all, `ownerMax` of one owner. */
export class Permits {
  private held = 0;
  private readonly owners = new Map<string, number>();

  constructor(
    private readonly max: number,
    private readonly ownerMax: number,
  ) {}

  /** Permits that are held. */
  get size(): number {
    return this.held;
  }

  /** The function that returns the permit; its later calls do nothing. A word names the bound that is reached. */
  take(owner: string): (() => void) | "owner" | "all" {
    const refused = this.add(owner, 1);
    if (refused) return refused;
    let isHeld = true;
    return () => {
      if (isHeld) this.subtract(owner, 1);
      isHeld = false;
    };
  }

  /** Takes `count` permits, or names the bound that they would exceed. */
  add(owner: string, count: number): "owner" | "all" | undefined {
    assert(Number.isSafeInteger(count) && count >= 0, "a number of permits is a whole number");
    const own = (this.owners.get(owner) ?? 0) + count;
    if (own > this.ownerMax) return "owner";
    if (this.held + count > this.max) return "all";
    this.held += count;
    this.owners.set(owner, own);
    return undefined;
  }

  subtract(owner: string, count: number): void {
    const own = (this.owners.get(owner) ?? 0) - count;
    this.held -= count;
    assert(this.held >= 0 && own >= 0, "no more permits are returned than were taken");
    if (own === 0) this.owners.delete(owner);
    else this.owners.set(owner, own);
  }
}

/** Pieces into which a window is divided. */
const PIECES = 60;
/** Additions between two removals of owners that have used nothing for a window. */
const SWEEP_EVERY = 1_024;
/** Above this number the owner that began first is forgotten. */
const OWNERS_MAX = 10_000;

/** Use within one piece of the window. Times are monotonic ms. */
interface Piece {
  readonly startMs: number;
  /** The last use. */
  lastMs: number;
  amount: number;
}

/** The amount that each owner may use within a moving window. A wall clock that jumps has no effect. */
export class Allowance {
  /** The oldest piece is first. */
  private readonly owners = new Map<string, Piece[]>();
  private readonly pieceMs: number;
  private added = 0;

  constructor(
    private readonly limit: number,
    private readonly windowMs: number,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {
    this.pieceMs = windowMs / PIECES;
  }

  /** Owners that are remembered. */
  get size(): number {
    return this.owners.size;
  }

  use(owner: string, amount: number): void {
    assert(Number.isFinite(amount) && amount >= 0, "a used amount is not negative");
    if (amount === 0) return;
    const lastMs = this.clock.monotonicMs();
    const startMs = Math.floor(lastMs / this.pieceMs) * this.pieceMs;
    const pieces = this.current(owner);
    const last = pieces?.at(-1);
    if (last?.startMs === startMs) {
      last.amount += amount;
      last.lastMs = lastMs;
    } else if (pieces) pieces.push({ startMs, lastMs, amount });
    else this.begin(owner, { startMs, lastMs, amount });
  }

  /** Uses 1, or returns the whole seconds to wait. */
  take(owner: string): number | undefined {
    const seconds = this.secondsToWait(owner);
    if (seconds === undefined) this.use(owner, 1);
    return seconds;
  }

  /** Undoes one `take`. */
  giveBack(owner: string): void {
    const last = this.owners.get(owner)?.findLast(({ amount }) => amount >= 1);
    if (last) last.amount -= 1;
  }

  /** Whole seconds until the owner is below the limit again, at least 1; undefined while it is. */
  secondsToWait(owner: string): number | undefined {
    const pieces = this.current(owner) ?? [];
    let used = pieces.reduce((sum, { amount }) => sum + amount, 0);
    for (const { lastMs, amount } of pieces) {
      if (used < this.limit) return undefined;
      used -= amount;
      if (used < this.limit) return Math.max(1, Math.ceil((lastMs + this.windowMs - this.clock.monotonicMs()) / 1_000));
    }
    return undefined;
  }

  /** The pieces that are still inside the window. */
  private current(owner: string): Piece[] | undefined {
    const pieces = this.owners.get(owner);
    if (!pieces) return undefined;
    const nowMs = this.clock.monotonicMs();
    const inside = pieces.findIndex(({ lastMs }) => lastMs + this.windowMs > nowMs);
    if (inside > 0) pieces.splice(0, inside);
    if (inside === -1) this.owners.delete(owner);
    return inside === -1 ? undefined : pieces;
  }

  private begin(owner: string, piece: Piece): void {
    this.owners.set(owner, [piece]);
    this.added += 1;
    if (this.added % SWEEP_EVERY === 0) for (const id of this.owners.keys()) this.current(id);
    if (this.owners.size <= OWNERS_MAX) return;
    const [oldest] = this.owners.keys();
    if (oldest !== undefined) this.owners.delete(oldest);
  }
}
