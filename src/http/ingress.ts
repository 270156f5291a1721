/** The budget of memory for request bodies and messages: how much is taken, and by whom. */
import { LIMITS } from "../limits.ts";
import { assert } from "../std/assert.ts";

export class Ingress {
  private taken = 0;
  private readonly shares = new Map<string, number>();

  /** One owner may take `LIMITS.ingressOwnerShare` of it, so that others always find room. */
  constructor(readonly bytesMax: number = LIMITS.ingressBytesMax) {}

  get bytes(): number {
    return this.taken;
  }

  take(owner: string, bytes: number): boolean {
    assert(Number.isSafeInteger(bytes) && bytes >= 0, "what is taken of the budget is a whole number of bytes");
    const share = (this.shares.get(owner) ?? 0) + bytes;
    if (this.taken + bytes > this.bytesMax || share > this.bytesMax * LIMITS.ingressOwnerShare) return false;
    this.taken += bytes;
    this.shares.set(owner, share);
    return true;
  }

  give(owner: string, bytes: number): void {
    const share = (this.shares.get(owner) ?? 0) - bytes;
    this.taken -= bytes;
    assert(this.taken >= 0 && share >= 0, "no more bytes are given back than were taken");
    if (share === 0) this.shares.delete(owner);
    else this.shares.set(owner, share);
  }
}
