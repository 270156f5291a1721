/** Reading a request's body under the route's limit, the budget of all bodies in memory, and a time limit. */
import { Failure } from "../error.ts";
import { LIMITS } from "../limits.ts";
import { assert } from "../std/assert.ts";
import type { Clock } from "../std/clock.ts";

/** The bytes of all bodies that are in memory, and how many of them are whose. */
export class Ingress {
  private taken = 0;
  private readonly shares = new Map<string, number>();

  /** One owner may have three quarters, so that others always find room. */
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

export interface Body {
  readonly bytes: Uint8Array;
  /** Gives its share of the budget back; call once, when the bytes are of no more use. */
  release(): void;
}

export interface BodyOptions {
  readonly bytesMax: number;
  readonly ingress: Ingress;
  /** Whose body it is: an account, or all who have none. */
  readonly owner: string;
  readonly clock: Clock;
}

/** Failures: `request_too_large`, `engine_unavailable` when the budget is spent, `invalid_body` when it does not arrive. */
export async function readBody(request: Request, options: BodyOptions): Promise<Body | Failure> {
  const { bytesMax, ingress, owner, clock } = options;
  const declared = request.headers.get("content-length");
  // A header that was sent twice arrives as "5, 5": then, as without one, only what is read is counted.
  const announced = declared !== null && /^\d+$/.test(declared) ? Number(declared) : undefined;
  if (announced !== undefined && announced > bytesMax) return tooLarge(bytesMax);
  // Only what has arrived counts: a client that announces much and sends little takes nothing from the others.
  const share = new Share(ingress, owner);
  const reader = request.body?.getReader();
  let late = false;
  const disarm = clock.after(LIMITS.bodyMs, () => {
    late = true;
    void reader?.cancel().catch(() => {});
  });
  try {
    const parts: Uint8Array[] = [];
    let length = 0;
    while (reader) {
      const { done, value } = await reader.read();
      if (done || late) break;
      length += value.length;
      const failure = length > bytesMax ? tooLarge(bytesMax) : share.grow(length) ? undefined : crowded();
      if (failure) {
        await reader.cancel();
        share.release();
        return failure;
      }
      parts.push(value);
    }
    if (!late) return { bytes: joined(parts, length), release: () => share.release() };
  } catch {
    // The connection broke; whoever sent it will not read the answer.
  } finally {
    disarm();
  }
  share.release();
  return new Failure("invalid_body", `the body did not arrive whole within ${LIMITS.bodyMs / 1000} s; send it again`);
}

/** What one request holds of the budget. */
class Share {
  private held = 0;

  constructor(
    private readonly ingress: Ingress,
    private readonly owner: string,
  ) {}

  /** Whether at least `bytes` in all are held now. */
  grow(bytes: number): boolean {
    if (bytes <= this.held) return true;
    if (!this.ingress.take(this.owner, bytes - this.held)) {
      this.release();
      return false;
    }
    this.held = bytes;
    return true;
  }

  release(): void {
    this.ingress.give(this.owner, this.held);
    this.held = 0;
  }
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const only = parts[0];
  if (only && parts.length === 1) return only;
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

function tooLarge(bytesMax: number): Failure {
  return new Failure(
    "request_too_large",
    `the body is over ${bytesMax} bytes; send fewer or more strongly compressed frames`,
  );
}

function crowded(): Failure {
  return new Failure("engine_unavailable", "too many large requests are in progress; retry with backoff", {
    retryAfterSeconds: 1,
  });
}
