/** A request's body as bytes in memory, under the route's limit, the budget of all bodies in memory, and a time limit. */
import { LIMITS } from "../limits.ts";
import { type Answers, Failure } from "../std/failure.ts";
import { announcedLength, streamBody } from "./body-stream.ts";
import type { HttpDeps } from "./deps.ts";

export interface Body {
  /** Pieces in the order in which they came; empty once native memory has a copy. */
  readonly parts: Uint8Array[];
  /** The bytes of all parts. */
  readonly length: number;
  /** Gives its share of the budget back; call once, when the bytes are not needed any more. */
  release(): void;
}

export interface BodyContext extends Pick<HttpDeps, "ingress" | "clock" | "bodies"> {
  readonly answers: Answers;
  /** The account whose share of the memory for bodies it takes; empty for all requests without one. */
  readonly owner: string;
  /** Called when all of a body in memory is here, before it is read as what it is. */
  readonly arrived?: () => void;
}

interface BodyOptions extends Omit<BodyContext, "bodies"> {
  readonly bytesMax: number;
  /** What a client does whose body is too large. */
  readonly smaller: string;
}

export async function readBody(request: Request, options: BodyOptions): Promise<Body | Failure> {
  const announced = announcedLength(request);
  const small = announced !== undefined && announced <= Math.min(LIMITS.wholeBodyBytesMax, options.bytesMax);
  const body = small ? await readWhole(request, announced, options) : await readPieces(request, options);
  options.arrived?.();
  return body;
}

/** Reads in one piece: a stream costs more than a small body itself, above all in garbage. */
async function readWhole(request: Request, announced: number, options: BodyOptions): Promise<Body | Failure> {
  const { ingress, owner, clock } = options;
  if (ingress.add(owner, announced)) return busy(options);
  const release = () => ingress.subtract(owner, announced);
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const disarm = clock.after(LIMITS.bodyMs, () => resolve(undefined));
  const bytes = await Promise.race([request.bytes().catch(() => undefined), late]);
  disarm();
  if (bytes?.length === announced) return { parts: [bytes], length: announced, release };
  release();
  return notWhole(options);
}

async function readPieces(request: Request, options: BodyOptions): Promise<Body | Failure> {
  const { bytesMax, ingress, owner, clock, answers, smaller } = options;
  const parts: Uint8Array[] = [];
  // Only what has arrived counts: a client that announces much and sends little takes nothing from the others.
  let held = 0;
  const release = () => {
    ingress.subtract(owner, held);
    held = 0;
  };
  const write = async (part: Uint8Array) => {
    if (ingress.add(owner, part.length)) return busy(options);
    held += part.length;
    parts.push(part);
    return undefined;
  };
  const sink = { write, abort: async () => release() };
  const streamed = await streamBody(request, sink, { bytesMax, totalMs: LIMITS.bodyMs, clock });
  if (streamed instanceof Failure) return streamed;
  if (typeof streamed === "number") return { parts, length: streamed, release };
  if (streamed === "too_large") return new Failure(answers.tooLarge, `the body is over ${bytesMax} bytes; ${smaller}`);
  return notWhole(options);
}

/** All bytes of a small body. */
export function joined({ parts, length }: Body): Uint8Array {
  const [only] = parts;
  return only && parts.length === 1 ? only : Buffer.concat(parts, length);
}

export function busy({ answers }: Pick<BodyContext, "answers">): Failure {
  const message = "too many large requests are in progress; retry with backoff";
  return new Failure(answers.unavailable, message, { retryAfterSeconds: 1 });
}

function notWhole({ answers }: BodyOptions): Failure {
  const message = `the body did not arrive whole within ${LIMITS.bodyMs / 1000} s; send it again`;
  return new Failure(answers.malformed, message);
}
