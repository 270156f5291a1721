/** The files of a run: `PUT`, `GET`, `HEAD`, `DELETE`; and the request that sends a file or a part. */
import { announcedLength, type BodyStream } from "../../http/body-stream.ts";
import type { Principal } from "../../http/deps.ts";
import type { Call, Outcome, Reply } from "../../http/route.ts";
import { LIMITS } from "../../limits.ts";
import { Failure } from "../../std/failure.ts";
import { invalid, RUNS } from "../errors.ts";
import { gated, type RunDeps } from "../gate.ts";
import { type PutFile, type PutKey, putFile, type Sent } from "../put.ts";
import { removeFile } from "../runs.ts";
import type { RunKey } from "../store/records.ts";
import { readDigest } from "./digest.ts";
import { download, etagOf } from "./download.ts";
import { readPrecondition } from "./range.ts";
import { about, readFileKey, removing } from "./target.ts";

const { runFileBytesMax, runIdleMs, runIdleBytesMin, runBodyMs } = LIMITS;

type Sending = Call<Principal, BodyStream>;

export async function putOne(deps: RunDeps, call: Sending): Promise<Outcome> {
  const read = (accountId: string, url: string): PutKey | Failure => {
    const key = readFileKey(accountId, url);
    if (key instanceof Failure) return key;
    const precondition = readPrecondition(call.request.headers);
    return precondition instanceof Failure ? precondition : { ...key, precondition };
  };
  const stored = await takeBody(deps, call, read, (key, sent) => putFile(deps, key, sent));
  return stored instanceof Failure ? stored : storedReply(stored.replaced ? 200 : 201, stored);
}

export function storedReply(status: number, { path, size, sha256 }: Omit<PutFile, "replaced">): Reply {
  const body = JSON.stringify({ path, size, sha256: sha256.toHex() });
  return { status, body, headers: { etag: etagOf(sha256) } };
}

/** Checks a request that sends bytes, in the order of the specification, and stores them with a permit for bodies. */
export async function takeBody<Key extends RunKey, T>(
  deps: RunDeps,
  { request, principal, body, server }: Sending,
  read: (accountId: string, url: string) => Key | Failure,
  store: (key: Key, sent: Sent) => Promise<T | Failure>,
): Promise<T | Failure> {
  const size = announcedSize(request);
  if (size instanceof Failure) return size;
  const key = read(principal.accountId, request.url);
  if (key instanceof Failure) return key;
  // A part of a file must not become the whole (RFC 9110, section 14.5).
  if (request.headers.has("content-range"))
    return invalid("the body is a part of a file (Content-Range); send the file whole, or by a multipart upload");
  const sha256 = readDigest(request.headers);
  if (sha256 instanceof Failure) return sha256;
  server?.timeout(request, LIMITS.runConnectionIdleSeconds);
  const stored = await gated(deps, key, () => store(key, { size, sha256, pour: pourFrom(body) }), "bodies");
  server?.timeout(request, LIMITS.connectionIdleSeconds);
  return stored;
}

function announcedSize(request: Request): number | Failure {
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

function pourFrom(body: BodyStream): Sent["pour"] {
  return async (sink) => {
    const write = async (piece: Uint8Array) => {
      const failure = await sink.write(piece);
      // The sink has copied it. A fast upload makes garbage faster than the collector runs, over a hundred megabytes.
      if (piece.length === piece.buffer.byteLength) (piece.buffer as ArrayBuffer).transfer(0);
      return failure;
    };
    const poured = await body(
      { write, abort: () => sink.abort() },
      {
        bytesMax: runFileBytesMax,
        idleMs: runIdleMs,
        idleBytesMin: runIdleBytesMin,
        totalMs: runBodyMs,
        lengthNeeded: true,
      },
    );
    if (typeof poured === "number") return undefined;
    if (poured instanceof Failure) return poured;
    if (poured === "too_large") return tooLarge();
    return invalid("the body did not come whole, as Content-Length says; send it again");
  };
}

const getFile = about(readFileKey, download, "downloads");

export async function getOne(deps: RunDeps, call: Call<Principal, undefined>): Promise<Outcome> {
  // The least rate of a download decides, not the silence between two of its pieces.
  call.server?.timeout(call.request, LIMITS.runConnectionIdleSeconds);
  return await getFile(deps, call);
}

export const headOne = about(readFileKey, download);

export const deleteOne = removing(readFileKey, removeFile);
