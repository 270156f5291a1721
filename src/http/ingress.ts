/** The budget of memory for request bodies and messages, in bytes. */
import { LIMITS } from "../limits.ts";
import { Permits } from "../std/quota.ts";

export class Ingress {
  private readonly permits: Permits;

  /** One owner may take `LIMITS.ingressOwnerShare` of it, so that others always find room. */
  constructor(bytesMax: number = LIMITS.ingressBytesMax) {
    this.permits = new Permits(bytesMax, bytesMax * LIMITS.ingressOwnerShare);
  }

  get bytes(): number {
    return this.permits.size;
  }

  take(owner: string, bytes: number): boolean {
    return this.permits.add(owner, bytes) === undefined;
  }

  give(owner: string, bytes: number): void {
    this.permits.subtract(owner, bytes);
  }
}
