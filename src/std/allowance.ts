/** How much each of many owners may use within a window of time that moves along with the clock. In this process's memory. */
import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";

/** The window moves on in so many pieces. */
const PIECES = 60;
/** Owners are forgotten when they have used nothing for a window; looked for each time that so many have been added. */
const SWEEP_EVERY = 1_024;

/** What was used within one piece of the window. */
interface Piece {
  readonly startMs: number;
  amount: number;
}

export class Allowance {
  /** Oldest piece first. */
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
    assert(Number.isFinite(amount) && amount >= 0, "what is used of an allowance is not negative");
    if (amount === 0) return;
    const startMs = Math.floor(this.clock.monotonicMs() / this.pieceMs) * this.pieceMs;
    const pieces = this.owners.get(owner);
    const last = pieces?.at(-1);
    if (last?.startMs === startMs) last.amount += amount;
    else if (pieces) pieces.push({ startMs, amount });
    else this.begin(owner, { startMs, amount });
  }

  /** Whole seconds until the owner is below the limit again, at least 1; undefined while it is. */
  secondsToWait(owner: string): number | undefined {
    const pieces = this.current(owner);
    if (!pieces) return undefined;
    let used = pieces.reduce((sum, { amount }) => sum + amount, 0);
    for (const { startMs, amount } of pieces) {
      if (used < this.limit) return undefined;
      used -= amount;
      if (used < this.limit) return Math.max(1, Math.ceil((this.endMs(startMs) - this.clock.monotonicMs()) / 1_000));
    }
    return undefined;
  }

  /** When a piece has left the window whole. */
  private endMs(startMs: number): number {
    return startMs + this.pieceMs + this.windowMs;
  }

  /** The pieces that are still inside the window. */
  private current(owner: string): Piece[] | undefined {
    const pieces = this.owners.get(owner);
    if (!pieces) return undefined;
    const nowMs = this.clock.monotonicMs();
    const inside = pieces.findIndex(({ startMs }) => this.endMs(startMs) > nowMs);
    if (inside > 0) pieces.splice(0, inside);
    if (inside === -1) this.owners.delete(owner);
    return inside === -1 ? undefined : pieces;
  }

  private begin(owner: string, piece: Piece): void {
    this.owners.set(owner, [piece]);
    this.added += 1;
    if (this.added % SWEEP_EVERY !== 0) return;
    for (const id of this.owners.keys()) this.current(id);
  }
}
