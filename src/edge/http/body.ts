/** Reading a request's body under the route's limit, the budget of all bodies in memory, and a time limit. */
import { Failure } from "../../error/core.ts";
import { ROBOT } from "../../error/robot.ts";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import type { Ingress } from "./ingress.ts";

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
  return new Failure(
    ROBOT.invalid_body,
    `the body did not arrive whole within ${LIMITS.bodyMs / 1000} s; send it again`,
  );
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
    ROBOT.request_too_large,
    `the body is over ${bytesMax} bytes; send fewer or more strongly compressed frames`,
  );
}

function crowded(): Failure {
  return new Failure(ROBOT.engine_unavailable, "too many large requests are in progress; retry with backoff", {
    retryAfterSeconds: 1,
  });
}
