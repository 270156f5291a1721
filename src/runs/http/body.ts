/** The body of a file or a part: its size before anything else, then its bytes. */

import { announcedLength, type BodyStream, type Sink } from "../../http/body-stream.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { RUNS } from "../errors.ts";
import type { Pour } from "../receive.ts";

const { runFileBytesMax, runIdleMs, runIdleBytesMin, runBodyMs } = LIMITS;

/** A part of a file must not become the whole (RFC 9110, section 14.5). */
export function partialBody({ headers }: Request): Failure | undefined {
  if (!headers.has("content-range")) return undefined;
  const message = "the body is a part of a file (Content-Range); send the file whole, or by a multipart upload";
  return new Failure(RUNS.invalid_request, message);
}

/** Bytes, out of `Content-Length`. */
export function announced(request: Request): number | Failure {
  const size = announcedLength(request);
  if (size === undefined) {
    const message = "the upload has no Content-Length; send one, not a chunked body";
    return new Failure(RUNS.length_required, message);
  }
  return size > runFileBytesMax ? tooLarge() : size;
}

function tooLarge(): Failure {
  const message = `the body is over ${runFileBytesMax} bytes; send a larger file by a multipart upload`;
  return new Failure(RUNS.request_too_large, message);
}

/**
 * Gives the memory of a piece back once the sink has copied it: a fast upload makes garbage faster than the collector looks for it,
 * over a hundred megabytes.
 */
function freeing(sink: Sink): Sink {
  return {
    write: async (piece) => {
      const failure = await sink.write(piece);
      if (piece.length === piece.buffer.byteLength) (piece.buffer as ArrayBuffer).transfer(0);
      return failure;
    },
    abort: () => sink.abort(),
  };
}

export function pourFrom(body: BodyStream): Pour {
  return async (sink) => {
    const poured = await body(freeing(sink), {
      bytesMax: runFileBytesMax,
      idleMs: runIdleMs,
      idleBytesMin: runIdleBytesMin,
      totalMs: runBodyMs,
      lengthNeeded: true,
    });
    if (typeof poured === "number") return undefined;
    if (poured instanceof Failure) return poured;
    if (poured === "too_large") return tooLarge();
    // Nobody reads this where the connection broke.
    return new Failure(RUNS.invalid_request, "the body did not come whole, as Content-Length says; send it again");
  };
}
