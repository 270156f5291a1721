/** A request's body as bytes in memory, under the route's limit, the budget of all bodies in memory, and a time limit. */
import { type Answers, Failure } from "../../error/core.ts";
import { LIMITS } from "../../limits.ts";
import type { Clock } from "../../std/clock.ts";
import { announcedLength } from "./body-stream.ts";
import type { Ingress } from "./ingress.ts";

interface Body {
  readonly bytes: Uint8Array;
  /** Gives its share of the budget back; call once, when the bytes are not needed any more. */
  release(): void;
}

interface BodyOptions {
  readonly bytesMax: number;
  readonly ingress: Ingress;
  /** Whose body it is: an account, or all who have none. */
  readonly owner: string;
  readonly clock: Clock;
  readonly answers: Answers;
  /** What a client does whose body is too large. */
  readonly smaller: string;
}

export async function readBody(request: Request, options: BodyOptions): Promise<Body | Failure> {
  const { bytesMax, ingress, owner, clock } = options;
  const announced = announcedLength(request);
  if (announced !== undefined && announced > bytesMax) return tooLarge(options);
  // Only what has arrived counts: a client that announces much and sends little takes nothing from the others.
  const share = new Share(ingress, owner);
  const reader = request.body?.getReader();
  let late = false;
  const disarm = clock.after(LIMITS.bodyMs, () => {
    late = true;
    reader?.cancel().catch(() => {});
  });
  try {
    const parts: Uint8Array[] = [];
    let length = 0;
    while (reader) {
      const { done, value } = await reader.read();
      if (done || late) break;
      length += value.length;
      const failure = length > bytesMax ? tooLarge(options) : share.grow(length) ? undefined : crowded(options);
      if (failure) {
        await reader.cancel();
        share.release();
        return failure;
      }
      parts.push(value);
    }
    if (!late) return { bytes: joined(parts, length), release: () => share.release() };
  } catch {
    // The connection broke: nobody will read the answer.
  } finally {
    disarm();
  }
  share.release();
  const message = `the body did not arrive whole within ${LIMITS.bodyMs / 1000} s; send it again`;
  return new Failure(options.answers.malformed, message);
}

/** The part of the budget that one request holds. */
class Share {
  private held = 0;

  constructor(
    private readonly ingress: Ingress,
    private readonly owner: string,
  ) {}

  /** Takes more, up to `bytes` in all; false where the budget does not have them. */
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

function tooLarge({ answers, bytesMax, smaller }: BodyOptions): Failure {
  return new Failure(answers.tooLarge, `the body is over ${bytesMax} bytes; ${smaller}`);
}

function crowded({ answers }: BodyOptions): Failure {
  const message = "too many large requests are in progress; retry with backoff";
  return new Failure(answers.unavailable, message, { retryAfterSeconds: 1 });
}
