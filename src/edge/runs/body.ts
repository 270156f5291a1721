/** The body of a file or a part: its size before anything else, then its bytes. */
import { Failure } from "../../error/core.ts";
import { RUNS } from "../../error/runs.ts";
import { LIMITS } from "../../limits.ts";
import type { Pour } from "../../runs/receive.ts";
import { announcedLength, type BodyStream } from "../http/body-stream.ts";

const { runFileBytesMax, runIdleMs, runBodyMs } = LIMITS;

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

export function pourFrom(body: BodyStream): Pour {
  return async (sink) => {
    const poured = await body(sink, {
      bytesMax: runFileBytesMax,
      idleMs: runIdleMs,
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
