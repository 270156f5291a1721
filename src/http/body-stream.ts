/**
 * A request's body, piece by piece into a sink: for uploads that are larger than the memory. The next piece is read when the
 * sink has taken the last one; until then the client's connection waits. Only the piece in hand is in memory.
 */
import type { Clock } from "../std/clock.ts";
import type { Failure } from "../std/failure.ts";
import { Pace } from "./pace.ts";

export interface Sink {
  /** Resolves when the next piece may come. A failure ends the body. */
  write(bytes: Uint8Array): Promise<Failure | undefined>;
  /** The body has not come whole: nothing of it is to be kept. Called once at most, also while a write is late, and nothing is written after it. */
  abort(): Promise<void>;
}

export interface StreamBounds {
  readonly bytesMax: number;
  /** The longest wait for the next piece; the time that the sink takes does not count. */
  readonly idleMs: number;
  /** Bytes that must come in each `idleMs`: a body that trickles counts as idle. */
  readonly idleBytesMin?: number;
  /** Milliseconds from now to the last byte, the sink's time included. */
  readonly totalMs?: number;
  /** A body without `Content-Length` is refused. */
  readonly lengthNeeded?: true;
}

/** A body for memory may pause, within its time. */
type Bounds = Omit<StreamBounds, "idleMs"> & { readonly idleMs?: number; readonly clock: Clock };

/** Why a body has not come whole. `cut`: the connection broke, or more or less came than `Content-Length` says. */
type StreamFault = "too_large" | "length_missing" | "cut" | "idle" | "late";

/** How it ended, exactly once: the number of its bytes, or what went wrong. */
export type Streamed = number | StreamFault | Failure;

export type BodyStream = (sink: Sink, bounds: StreamBounds) => Promise<Streamed>;

type Reader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

export async function streamBody(request: Request, sink: Sink, bounds: Bounds): Promise<Streamed> {
  const reader: Reader | undefined = request.body?.getReader();
  let outcome: Streamed | undefined;
  try {
    outcome = announcedFault(request, bounds) ?? (await pour(reader, sink, bounds, announcedLength(request)));
    return outcome;
  } finally {
    // A body that is not whole is never kept, even after a bug in the sink.
    if (typeof outcome !== "number") {
      reader?.cancel().catch(() => {});
      await sink.abort();
    }
  }
}

/** What `Content-Length` says; a header that was sent twice arrives as "5, 5" and says nothing. */
export function announcedLength(request: Request): number | undefined {
  const declared = request.headers.get("content-length");
  return declared !== null && /^\d+$/.test(declared) ? Number(declared) : undefined;
}

function announcedFault(request: Request, { bytesMax, lengthNeeded }: Bounds): StreamFault | undefined {
  const announced = announcedLength(request);
  if (announced === undefined) return lengthNeeded ? "length_missing" : undefined;
  return announced > bytesMax ? "too_large" : undefined;
}

async function pour(
  reader: Reader | undefined,
  sink: Sink,
  { bytesMax, idleMs, idleBytesMin = 0, totalMs, clock }: Bounds,
  announced: number | undefined,
): Promise<Streamed> {
  let length = 0;
  let overdue: StreamFault | undefined;
  const over = Promise.withResolvers<undefined>();
  const give = (fault: StreamFault) => {
    overdue ??= fault;
    // A read that waits ends with it, and so does a write: a sink that hangs holds neither the connection nor a shutdown.
    reader?.cancel().catch(() => {});
    over.resolve(undefined);
  };
  const within = (ms: number | undefined, fault: StreamFault) =>
    ms === undefined ? () => {} : clock.after(ms, () => give(fault));
  const disarmTotal = within(totalMs, "late");
  const pace = new Pace(idleMs ?? Number.POSITIVE_INFINITY, idleBytesMin);
  try {
    while (reader) {
      const disarmIdle = within(idleMs, "idle");
      const askedMs = clock.monotonicMs();
      const piece = await reader.read().catch(() => undefined);
      disarmIdle();
      if (overdue) return overdue;
      if (!piece) return "cut";
      if (piece.done) break;
      length += piece.value.length;
      if (!pace.isKept(clock.monotonicMs() - askedMs, piece.value.length)) return "idle";
      if (length > bytesMax) return "too_large";
      if (announced !== undefined && length > announced) return "cut";
      const failure = await Promise.race([sink.write(piece.value), over.promise]);
      if (failure) return failure;
      if (overdue) return overdue;
    }
    return announced !== undefined && length !== announced ? "cut" : length;
  } finally {
    disarmTotal();
  }
}
